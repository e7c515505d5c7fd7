import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { referenceFiles } from "../support/reference.ts";

describe("generated reference tables", () => {
  it("say what the code says; `npm run reference` writes them", async () => {
    for (const [path, text] of await referenceFiles()) {
      expect(await readFile(fileURLToPath(new URL(`../../../${path}`, import.meta.url)), "utf8"), path).to.equal(text);
    }
  });
});
