import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { markedBlocks } from "../readme/block.ts";
import { testedPages } from "../readme/page.ts";
import { readSourceTree, repositoryRoot, type SourceTree } from "./source-tree.ts";

const readme = readFileSync(join(repositoryRoot, "README.md"), "utf8");
const pages = new Map([
  ["README.md", readme] as const,
  ...readSourceTree(["core", "plugins", "policy-packs", "release", "test"], [".md"]),
]);

/** Pages with marked commands that no test runs, and tested pages without any. */
function untestedPages(tree: SourceTree, tested: readonly string[]): readonly string[] {
  const marked = [...tree].filter(([, text]) => markedBlocks(text).length > 0).map(([path]) => path);
  return [
    ...marked.filter((path) => !tested.includes(path)).map((path) => `${path}: has commands that nothing runs`),
    ...tested.filter((path) => !marked.includes(path)).map((path) => `${path}: expected commands, found none`),
  ];
}

describe("pages with commands", () => {
  it("all run in a clean clone", () => {
    expect(untestedPages(pages, testedPages)).to.deep.equal([]);
  });

  it("are found where they do not", () => {
    const tree = new Map([
      ["a.md", "```sh run\nls\n```\n"],
      ["b.md", "Nothing."],
    ]);
    expect(untestedPages(tree, ["b.md"])).to.deep.equal([
      "a.md: has commands that nothing runs",
      "b.md: expected commands, found none",
    ]);
  });
});

describe("README", () => {
  it("is one page: fewer than 180 lines", () => {
    expect(readme.trimEnd().split("\n").length).to.be.below(180);
  });

  it("has no command that does not run, and begins with two", () => {
    expect(readme.match(/^```(?:sh|bash|json|yaml)$/gm)).to.equal(null);
    expect(markedBlocks(readme)[0]).to.deep.equal({ use: "start", text: "npm ci\nnpm start\n", shown: null });
  });

  it("names tests that exist", () => {
    const named = [...readme.matchAll(/`(test\/[\w/-]+)`/g)].map(([, path = ""]) => path);
    const exists = (path: string): boolean => existsSync(join(repositoryRoot, path));
    expect(named.filter((path) => !exists(`${path}.test.ts`) && !exists(path))).to.deep.equal([]);
    expect(named).to.have.length.above(20);
  });

  it("is led by npm to the pages of the repository, which a release names before it packs", () => {
    expect(readme.match(/\]\((?:\/|\.\.)[^)]*\)/g)).to.equal(null);
    const release = readFileSync(join(repositoryRoot, ".github/workflows/release.yml"), "utf8");
    expect(release.split("npm run pack")[0]).to.include('npm pkg set "repository.type=git" "repository.url=$url"');
  });
});
