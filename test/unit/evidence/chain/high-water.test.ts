import { mkdtemp, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { HighWaterFile, type Mark } from "../../../../core/evidence/chain/high-water.ts";
import { rejection } from "../../../support/ledger-world.ts";

const page = 4096;

describe("HighWaterFile", () => {
  let dir: string;
  let path: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "high-water-"));
    path = join(dir, "high-water");
  });

  afterEach(() => rm(dir, { recursive: true }));

  it("remembers the last mark of each tenant, however often and in whatever company it was raised", async () => {
    await write(
      [mark("a", 0), mark("b", 0)],
      [mark("a", 1)],
      [mark("b", 7), mark("a", 2)],
      [mark("c", 0)],
      [mark("a", 3)],
    );
    expect(await read()).to.have.deep.members([mark("a", 3), mark("b", 7), mark("c", 0)]);
    await write([mark("d", 5), mark("a", 4)]);
    expect(await read()).to.have.deep.members([mark("a", 4), mark("b", 7), mark("c", 0), mark("d", 5)]);
  });

  it("is a file for this user alone", async () => {
    await write([mark("a", 0)]);
    expect((await stat(path)).mode & 0o777).to.equal(0o600);
  });

  it("takes a tenant whose name is as long as names get", async () => {
    const longest = mark("\u0001".repeat(256), 1);
    await write([longest]);
    expect(await read()).to.deep.equal([longest]);
  });

  it("falls back to the mark before when the last write was torn", async () => {
    await write([mark("a", 1), mark("b", 1)], [mark("a", 2)], [mark("a", 3)]);
    // `a` owns the first two pages; turns 0 and 2 are on the first, turn 1 on the second.
    await scribble(0, 200);
    expect(await read()).to.have.deep.members([mark("a", 2), mark("b", 1)]);
  });

  it("writes over the torn page, not over the good one", async () => {
    await write([mark("a", 1)], [mark("a", 2)], [mark("a", 3)]);
    await scribble(0, 200);
    await write([mark("a", 9)]);
    await scribble(page, 200);
    expect(await read()).to.deep.equal([mark("a", 9)]);
  });

  it("refuses to open when both pages of a tenant are damaged", async () => {
    await write([mark("a", 1), mark("b", 1)], [mark("b", 2)]);
    await scribble(2 * page, 50);
    await scribble(3 * page, 50);
    const error = await rejection(HighWaterFile.open(path));
    expect(error).to.include({
      code: "STATE_UNUSABLE",
      detail: `high-water mark 1 in \`${path}\` is damaged; restore the file from the newest backup`,
    });
  });

  it("takes a first write that never finished for no mark, and does not reuse its place", async () => {
    await write([mark("a", 1), mark("b", 1)]);
    await scribble(0, 50);
    expect(await read()).to.deep.equal([mark("b", 1)]);
    await write([mark("c", 4)]);
    expect(await read()).to.have.deep.members([mark("b", 1), mark("c", 4)]);
  });

  it("notices any single byte changed in a page", async () => {
    await write([mark("a", 1)], [mark("a", 2)]);
    const sound = await readFile(path);
    const used = sound.indexOf(0, page) - page;
    for (let at = page; at < page + used; at++) {
      const bytes = Buffer.from(sound);
      bytes[at] = (bytes[at] as number) ^ 1;
      await writeFile(path, bytes);
      expect(await read(), `byte ${at}`).to.deep.equal([mark("a", 1)]);
    }
  });

  it("says where it cannot open", async () => {
    const error = await rejection(HighWaterFile.open(join(dir, "no", "file")));
    expect(error).to.include({ code: "STATE_UNUSABLE" });
    expect(error.message).to.match(/high-water marks cannot be opened \(enoent/i);
  });

  function mark(tenant: string, seq: number): Mark {
    return { tenant, chain: "chain", seq, head: `${seq}`.padStart(64, "0") };
  }

  async function write(...steps: readonly (readonly Mark[])[]): Promise<void> {
    const file = await HighWaterFile.open(path);
    for (const marks of steps) await file.advance(marks);
    await file.close();
  }

  async function read(): Promise<Mark[]> {
    const file = await HighWaterFile.open(path);
    const marks = [...file.marks.values()];
    await file.close();
    return marks;
  }

  async function scribble(position: number, length: number): Promise<void> {
    const file = await open(path, "r+");
    await file.write(Buffer.alloc(length, "x"), 0, length, position);
    await file.close();
  }
});
