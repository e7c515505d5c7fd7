import { expect } from "chai";
import { Breach } from "../../../../core/evidence/bundle/breach.ts";
import { packTar, readTar } from "../../../../core/evidence/bundle/tar.ts";

const files = new Map([
  ["b.txt", Buffer.from("two")],
  ["a.txt", Buffer.alloc(512, 0x61)],
  ["c.txt", Buffer.alloc(0)],
]);

describe("packTar(files)", () => {
  it("makes the same bytes of the same files, in whatever order they come", () => {
    const reversed = new Map([...files].reverse());
    expect(packTar(reversed).equals(packTar(files))).to.equal(true);
  });

  it("makes an archive that is read back to the byte", () => {
    const read = readTar(packTar(files));
    expect([...read.keys()]).to.deep.equal(["a.txt", "b.txt", "c.txt"]);
    for (const [name, content] of files) expect(Buffer.from(read.get(name) ?? "none").equals(content)).to.equal(true);
  });

  for (const name of ["", "a/b", "../a", ".hidden", "ä", "x".repeat(100)]) {
    it(`refuses to name a file \`${name.slice(0, 12)}\``, () => {
      expect(() => packTar(new Map([[name, Buffer.alloc(0)]]))).to.throw(TypeError, "expected a plain file name");
    });
  }
});

describe("readTar(archive)", () => {
  const good = packTar(files);

  /** An archive whose first header was changed at `offset`, with its checksum made right again. */
  function changed(offset: number, bytes: string): Buffer {
    const archive = Buffer.from(good);
    archive.write(bytes, offset, "latin1");
    archive.write("        ", 148, "latin1");
    const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0);
    archive.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
    return archive;
  }

  const bad: readonly (readonly [string, Buffer])[] = [
    ["a symbolic link", changed(156, "2")],
    ["a folder", changed(156, "5")],
    ["an extended header", changed(156, "x")],
    ["a path that climbs", changed(0, "../etc\0")],
    ["an absolute path", changed(0, "/etc\0")],
    ["a path prefix", changed(345, "etc")],
    ["an executable file", changed(100, "0000755")],
    ["another owner", changed(108, "0001750")],
    ["a time", changed(136, "00000000001")],
    ["a size in base 256", changed(124, "\x80")],
    ["a size beyond the end", changed(124, "77777777777")],
    ["a wrong checksum", Buffer.from(good).fill("1", 148, 149)],
    ["bytes in the padding", Buffer.concat([good.subarray(0, 1536 + 3), Buffer.from("x"), good.subarray(1536 + 4)])],
    ["a file twice", Buffer.concat([good.subarray(0, 1024), good])],
    ["files out of order", Buffer.concat([good.subarray(1024, 2048), good.subarray(0, 1024), good.subarray(2048)])],
    ["trailing bytes", Buffer.concat([good, Buffer.alloc(512)])],
    ["no end", good.subarray(0, -512)],
    ["nothing", Buffer.alloc(0)],
  ];

  for (const [what, archive] of bad) {
    it(`refuses ${what}`, () => {
      expect(() => readTar(archive))
        .to.throw(Breach)
        .with.property("reason", "malformed");
    });
  }
});
