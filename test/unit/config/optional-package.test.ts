import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { optionalPackages } from "../../../core/config/optional-package.ts";
import { importsOf, readSourceTree, repositoryRoot } from "../../check/source-tree.ts";

describe("optionalPackages", () => {
  it("are those of package.json: an installation without one says what to install", () => {
    const { optionalDependencies } = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8"));
    expect([...new Set(Object.values(optionalPackages).flat())].toSorted()).to.deep.equal(
      Object.keys(optionalDependencies).toSorted(),
    );
  });

  it("are imported only where a use asked for them first: the rest runs without", () => {
    const imports = [...readSourceTree(["core"], [".ts"])].flatMap(([from, source]) =>
      importsOf(from, source).flatMap(({ name, path, values }) => (values.length === 0 ? [] : [{ from, name, path }])),
    );
    const names = Object.values(optionalPackages).flat();
    const isOptional = (name: string): boolean => names.some((each) => name === each || name.startsWith(`${each}/`));
    const dependent = new Set(imports.filter(({ name }) => isOptional(name)).map(({ from }) => from));
    // A set grows while it is walked: importers of importers are found as well.
    for (const path of dependent) for (const each of imports) if (each.path === path) dependent.add(each.from);
    const imported = new Set(imports.map(({ path }) => path));
    const roots = [...dependent].filter((path) => !imported.has(path));
    expect(roots).to.have.members([
      "core/cli/keyless-sign.ts",
      "core/cli/trust-update.ts",
      "core/observe/otlp/telemetry.ts",
    ]);
  });
});
