import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { readSourceTree, repositoryRoot } from "./source-tree.ts";

interface Promised {
  readonly number: number;
  readonly title: string;
}

describe("README's promises", () => {
  const [, section = ""] = /\n## What you can rely on\n([\s\S]*?)\n## /.exec(read("README.md")) ?? [];
  const promised = promisesIn(section, /^\| (\d+) \| \*\*(.+?)\*\*/gm);

  it("are each shown by one test in `test/e2e/promise`, which is named by its number", () => {
    const shown = [...readSourceTree(["test/e2e/promise"], [".test.ts"]).values()].flatMap((source) =>
      [...source.matchAll(/\bit\("(\d+) /g)].map(([, number]) => Number(number)),
    );
    expect(promised).to.have.length.above(10);
    expect(shown.toSorted((a, b) => a - b)).to.deep.equal(promised.map(({ number }) => number));
  });

  it("are each said in full in core/PROMISES.md", () => {
    expect(promisesIn(read("core/PROMISES.md"), /^(\d+)\. \*\*(.+?)\*\*/gm)).to.deep.equal(promised);
  });
});

function read(path: string): string {
  return readFileSync(join(repositoryRoot, path), "utf8");
}

/** Numbers and titles; a title is the same with and without its full stop. */
function promisesIn(text: string, pattern: RegExp): readonly Promised[] {
  return [...text.matchAll(pattern)].map(([, number, title = ""]) => ({
    number: Number(number),
    title: title.replace(/\.$/, ""),
  }));
}
