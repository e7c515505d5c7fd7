import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { optionalPackages } from "../../../core/config/optional-package.ts";
import { repositoryRoot } from "../../check/source-tree.ts";

describe("optionalPackages", () => {
  it("are those of package.json: an installation without one says what to install", () => {
    const { optionalDependencies } = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8"));
    expect(Object.values(optionalPackages).flat().toSorted()).to.deep.equal(
      Object.keys(optionalDependencies).toSorted(),
    );
  });
});
