import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { readSourceTree, repositoryRoot } from "./source-tree.ts";

describe("README's promises", () => {
  it("are each shown by one test in `test/e2e/promise`, which is named by its number", () => {
    const readme = readFileSync(join(repositoryRoot, "README.md"), "utf8");
    const [, section = ""] = /\n## What you can rely on\n([\s\S]*?)\n## /.exec(readme) ?? [];
    const promised = [...section.matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => Number(number));
    const shown = [...readSourceTree(["test/e2e/promise"], [".test.ts"]).values()].flatMap((source) =>
      [...source.matchAll(/\bit\("(\d+) /g)].map(([, number]) => Number(number)),
    );
    expect(promised).to.have.length.above(10);
    expect(shown.toSorted((a, b) => a - b)).to.deep.equal(promised);
  });
});
