import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { makeFolder } from "../../../core/store/folder.ts";

describe("makeFolder(path)", () => {
  let root: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "make-folder-"));
  });

  afterEach(() => rm(root, { recursive: true }));

  it("makes all that is missing for its owner alone, and is content with what is there", async () => {
    for (let time = 0; time < 2; time++) await makeFolder(join(root, "a/b/c"));
    for (const path of ["a", "a/b", "a/b/c"]) {
      expect(((await stat(join(root, path))).mode & 0o777).toString(8), path).to.equal("700");
    }
  });

  for (const [where, path, code] of [
    ["in its place", "file", "EEXIST"],
    ["above it", "file/folder", "ENOTDIR"],
  ] as const) {
    it(`rejects with ${code} where a file stands ${where}`, async () => {
      await writeFile(join(root, "file"), "");
      const error = await makeFolder(join(root, path)).then(
        () => null,
        (cause: NodeJS.ErrnoException) => cause.code,
      );
      expect(error).to.equal(code);
    });
  }
});
