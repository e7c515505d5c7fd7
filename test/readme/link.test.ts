import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { readSourceTree, repositoryRoot } from "../check/source-tree.ts";
import { referenceFiles } from "../support/reference.ts";

/** What a scaffold brings is a page of somebody else's. */
const isTemplate = (path: string): boolean => /^sdk\/template\/\w+\//.test(path);
const found = readSourceTree(["core", "plugins", "policy-packs", "sdk", "test"], [".md"]);
const pages = new Map([
  ...[...found].filter(([path]) => !isTemplate(path)),
  ...["README.md", "CHANGELOG.md"].map((path) => [path, readFileSync(join(repositoryRoot, path), "utf8")] as const),
]);

describe("the pages of this repository", () => {
  it("link to what exists", () => {
    expect(linksOf(pages).filter(([, target]) => !existsSync(join(repositoryRoot, target)))).to.deep.equal([]);
  });

  it("name source files that exist, below where they stand or from the top", () => {
    const sources = [...readSourceTree(["core", "plugins", "sdk", "test"], [".ts"]).keys()];
    const missing = [...pages].flatMap(([page, text]) =>
      [...text.matchAll(/`((?:[a-z0-9-]+\/)*[a-z0-9-]+\.ts)`/g)]
        .map(([, path = ""]) => path)
        .filter((path) => !sources.some((source) => isNamed(source, path, dirname(page))))
        .map((path) => `${page}: ${path}`),
    );
    expect(missing).to.deep.equal([]);
  });

  it("lead from the first page to every other one", () => {
    const links = linksOf(pages);
    const reached = new Set(["README.md"]);
    for (const page of reached) for (const [from, target] of links) if (from === page) reached.add(target);
    expect([...pages.keys()].filter((page) => !reached.has(page))).to.deep.equal([]);
  });

  it("lead from the first page to every generated table", async () => {
    const linked = new Set(linksOf(pages).map(([, target]) => target));
    expect([...(await referenceFiles()).keys()].filter((path) => !linked.has(path))).to.deep.equal([]);
  });
});

/** Page and target of every link within the repository, both from its root. */
function linksOf(texts: ReadonlyMap<string, string>): readonly (readonly [page: string, target: string])[] {
  return [...texts].flatMap(([page, text]) =>
    [...text.matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g)].map(
      ([, target = ""]) => [page, join(dirname(page), target)] as const,
    ),
  );
}

function isNamed(source: string, path: string, folder: string): boolean {
  return source === path || (source.startsWith(`${folder}/`) && source.endsWith(`/${path}`));
}
