import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { consoleAssets, readAsset } from "../../../../core/admin/console/assets.ts";
import { repositoryRoot } from "../../../check/source-tree.ts";

const folder = join(repositoryRoot, "core/admin/console/asset");

describe("the assets of the console", () => {
  it("are the files of the folder but the page itself, and those of the charting package", () => {
    const own: string[] = consoleAssets.map(({ file }) => file).filter((file) => !file.includes("/"));
    expect(own).to.have.members(readdirSync(folder).filter((name) => name !== "index.html"));
    for (const { file } of consoleAssets) expect(readAsset(file).length, file).to.be.above(50);
  });

  it("name each other and nothing else", () => {
    const served = new Set<string>(consoleAssets.map(({ name }) => name));
    const named = (text: string): string[] =>
      [...text.matchAll(/(?:from "\.\/|(?:src|href)="\/assets\/)([^"]+)"/g)].map(([, name = ""]) => name);
    for (const name of readdirSync(folder)) {
      for (const each of named(readFileSync(join(folder, name), "utf8")))
        expect(served, `${name}: ${each}`).to.include(each);
    }
  });

  it("put no text in as markup, and evaluate none [S67]", () => {
    for (const name of readdirSync(folder)) {
      const text = readFileSync(join(folder, name), "utf8");
      expect(text, name).to.not.match(
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|style="/,
      );
    }
  });
});
