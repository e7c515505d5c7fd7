import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { readSourceTree, repositoryRoot, type SourceTree } from "./source-tree.ts";

/** The pages, sources, generated documents and transcripts that people and programs read. */
const read = new Map(
  [
    ...readSourceTree(
      ["core", "plugins", "policy-packs", "sdk", "test/cli", ".github"],
      [".md", ".ts", ".json", ".yaml", ".txt"],
    ),
    ["README.md", readFileSync(join(repositoryRoot, "README.md"), "utf8")] as const,
  ].filter(([path]) => !/\/(?:node_modules|dist|build)\//.test(path)),
);

/** The names that the changelog lists as former ones, as far as they are no everyday words. */
function formerNames(changelog: string): readonly string[] {
  const renamed = changelog.slice(changelog.indexOf("### Renamed"), changelog.indexOf("### Changed"));
  return renamed
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| what ") && !line.startsWith("| before "))
    .map((line) => line.split(" | ").at(-2) ?? "")
    .map((cell) => cell.replace(/^\| /, "").replace(/^`(.*)`$/, "$1"))
    .filter(
      (name) => /^[a-z]+(?:[._][a-z_]+)+$|^GET \/|^[a-z][a-z ,:]{20,}$/.test(name) && !name.startsWith("would_have"),
    );
}

function renameFaults(names: readonly string[], tree: SourceTree): readonly string[] {
  return names.flatMap((name) =>
    [...tree].filter(([, source]) => source.includes(name)).map(([path]) => `${path}: still has \`${name}\``),
  );
}

describe("renamed names", () => {
  const names = formerNames(readFileSync(join(repositoryRoot, "CHANGELOG.md"), "utf8"));

  it("are in no page, source, document or transcript any more", () => {
    expect(names).to.include.members([
      "limits.admin_strangers_per_minute",
      "gateway_would_have_total",
      "GET /admin/v1/would-have",
    ]);
    expect(renameFaults(names, read)).to.deep.equal([]);
  });

  it("are seen where they are left", () => {
    const tree = new Map([["core/a.md", "Set `sessions.forget_days`."]]);
    expect(renameFaults(["sessions.forget_days"], tree)).to.deep.equal(["core/a.md: still has `sessions.forget_days`"]);
  });
});
