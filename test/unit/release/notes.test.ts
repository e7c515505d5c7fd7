import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { releaseNotes } from "../../../release/notes.ts";
import { repositoryRoot } from "../../check/source-tree.ts";

const changelog =
  "# Changelog\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- More.\n\n## [0.1.0] - 2026-11-22\n\nThe first.\n\n## [0.0.1]\n";

describe("releaseNotes(changelog, version)", () => {
  it("returns what stands below one version", () => {
    expect(releaseNotes(changelog, "0.2.0")).to.equal("### Added\n\n- More.\n");
    expect(releaseNotes(changelog, "0.1.0")).to.equal("The first.\n");
  });

  it("refuses a version of which nothing is said", () => {
    for (const version of ["0.0.1", "0.2", "1.0.0"]) {
      expect(() => releaseNotes(changelog, version)).to.throw(`expected notes below \`## [${version}]\``);
    }
  });

  it("finds those of the version of both packages in the changelog", () => {
    const read = (path: string): string => readFileSync(join(repositoryRoot, path), "utf8");
    const { version } = JSON.parse(read("package.json"));
    expect(JSON.parse(read("sdk/package.json")).version).to.equal(version);
    expect(releaseNotes(read("CHANGELOG.md"), version)).to.include("### Added");
  });
});
