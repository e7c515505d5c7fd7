import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { referenceFiles } from "../support/reference.ts";
import { repositoryRoot } from "./source-tree.ts";

describe("generated reference tables", () => {
  it("say what the code says; `npm run reference` writes them", async () => {
    for (const [path, text] of await referenceFiles()) {
      expect(await readFile(join(repositoryRoot, path), "utf8"), path).to.equal(text);
    }
  });
});
