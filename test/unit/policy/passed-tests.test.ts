import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { type BuildRecord, hasPassed } from "../../../core/policy/passed-tests.ts";
import { readExtensionFolder } from "../../../core/trust/folder.ts";
import { repositoryRoot } from "../../check/source-tree.ts";

const kinds = [
  { folder: "policy-packs", kind: "pack" },
  { folder: "plugins", kind: "plugin" },
] as const;

describe("the own tests of what is shipped", () => {
  let record: BuildRecord;
  before(async () => {
    record = JSON.parse(await readFile(new URL("../../../core/build-record", import.meta.url), "utf8"));
  });

  for (const { folder, kind } of kinds) {
    it(`have passed when the program was built: no start runs those of ${folder} again`, async () => {
      const all = (await readdir(join(repositoryRoot, folder), { withFileTypes: true })).filter((each) =>
        each.isDirectory(),
      );
      expect(all).to.not.have.length(0);
      for (const { name } of all) {
        const { digest } = await readExtensionFolder(join(repositoryRoot, folder, name), kind);
        expect(record.passed, name).to.include(digest);
        expect(hasPassed({ digest }), name).to.equal(true);
      }
    });
  }

  it("run where a byte is another one", async () => {
    const copy = await mkdtemp(join(tmpdir(), "shipped-"));
    await cp(join(repositoryRoot, "policy-packs/baseline"), copy, { recursive: true });
    const [test = ""] = await readdir(join(copy, "tests"));
    await writeFile(join(copy, "tests", test), `${await readFile(join(copy, "tests", test), "utf8")}\n`);
    const { digest } = await readExtensionFolder(copy, "pack");
    await rm(copy, { recursive: true });
    expect(record.passed).to.not.include(digest);
    expect(hasPassed({ digest })).to.equal(false);
  });
});
