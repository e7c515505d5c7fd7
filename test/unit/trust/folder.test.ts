import { execFileSync } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { readExtensionFolder } from "../../../core/trust/folder.ts";
import { rejection } from "../../support/ledger-world.ts";
import { type PackFiles, PackFolders } from "../../support/policy-pack.ts";

describe("readExtensionFolder(path, kind)", () => {
  const folders = new PackFolders();
  afterEach(() => folders.remove());

  it("keeps the signature of this kind apart, and no other file", async () => {
    const files = { "b.txt": "b", "a/c.txt": "c", "pack.sigstore.json": "p", "plugin.sigstore.json": "q" };
    const folder = await folders.write(files);
    const pack = await readExtensionFolder(folder, "pack");
    expect([...pack.files.keys()]).to.deep.equal(["a/c.txt", "b.txt", "plugin.sigstore.json"]);
    expect(pack.signature?.toString()).to.equal("p");
    expect((await readExtensionFolder(folder, "plugin")).signature?.toString()).to.equal("q");
    expect([...pack.fileDigests.keys()]).to.deep.equal([...pack.files.keys()]);
  });

  const many: PackFiles = Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`${index}.txt`, ""]));
  const large = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`${index}.bin`, Buffer.alloc(1_048_576)]));
  const refusals: readonly (readonly [what: string, files: PackFiles, fault: string])[] = [
    ["257 files", many, "expected at most 256 files, got more"],
    ["17 files of a megabyte", large, "expected at most 16777216 bytes in all, got more"],
    ["a file beyond a megabyte", { "a.bin": Buffer.alloc(1_048_577) }, "a.bin: expected at most 1048576 bytes"],
    ["a module beyond 4 MiB", { "a.wasm": Buffer.alloc(4_194_305) }, "a.wasm: expected at most 4194304 bytes"],
    ["nine folders inside one another", { "a/a/a/a/a/a/a/a/a.txt": "" }, "expected at most 8 folders"],
    ["a name that reads from right to left", { "a\u202eb.txt": "" }, "expected names of printable characters"],
    ["a name with a line break", { "a\nb.txt": "" }, 'got "a\\nb.txt"'],
  ];
  for (const [what, files, fault] of refusals) {
    it(`refuses ${what}`, async () => {
      const error = await rejection(readExtensionFolder(await folders.write(files), "pack"));
      expect(error).to.include({ code: "EXTENSION_INVALID" });
      expect(error.message).to.include(fault);
    });
  }

  it("leaves out a plugin author's workplace at the top, whatever is in it; of a pack, nothing", async () => {
    const files = { ...many, "a.bin": Buffer.alloc(1_048_577) };
    const workplace = Object.fromEntries(Object.entries(files).map(([name, bytes]) => [`node_modules/${name}`, bytes]));
    const folder = await folders.write({ "b.txt": "b", "src/build/c.txt": "c", "build/d.map": "d", ...workplace });
    await symlink("/nowhere", join(folder, ".git"));
    const { files: read } = await readExtensionFolder(folder, "plugin");
    expect([...read.keys()]).to.deep.equal(["b.txt", "src/build/c.txt"]);
    expect((await rejection(readExtensionFolder(folder, "pack"))).message).to.include("at most 256 files");
  });

  it("refuses a pipe without waiting for it", async () => {
    const folder = await folders.write({ "a.txt": "" });
    await mkdir(join(folder, "rules"));
    execFileSync("mkfifo", [join(folder, "rules", "b.yaml")]);
    const error = await rejection(readExtensionFolder(folder, "pack"));
    expect(error.message).to.include("rules/b.yaml: expected a file or a folder, got something else");
  });
});
