import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { replaceClientFile } from "../../../core/cli/adopt/client-file.ts";
import { replaceFile } from "../../../core/cli/replace-file.ts";
import { rejection } from "../../support/ledger-world.ts";

describe("a file that cannot be replaced", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "replace-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  for (const [what, replace] of [
    ["of an extension", (path: string) => replaceFile(path, "new")],
    ["of a client", (path: string) => replaceClientFile(path, Buffer.from("new"), 0o600)],
  ] as const) {
    it(`${what} is told by what is in its place and what to do, and leaves nothing behind`, async () => {
      const path = join(folder, "taken");
      await mkdir(path);
      const next = "check who may write to its folder, and run this again";
      expect((await rejection(replace(path))).message).to.include(
        `expected to write \`${path}\`, got a directory; ${next}`,
      );
      const below = join(folder, "none", "file");
      expect((await rejection(replace(below))).message).to.include(
        `expected to write \`${below}\`, got no such file; ${next}`,
      );
      expect(await readdir(folder)).to.deep.equal(["taken"]);
    });
  }
});
