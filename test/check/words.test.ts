import { expect } from "chai";
import { readSourceTree } from "./source-tree.ts";
import { doubleFaults, nameFaults, questionFaults } from "./words.ts";

const product = new Map(
  [...readSourceTree(["core", "sdk", "plugins"], [".ts"])].filter(
    ([path]) => !/\/(?:node_modules|dist|build)\//.test(path),
  ),
);
const core = new Map([...product].filter(([path]) => path.startsWith("core/")));

describe("the words of the code", () => {
  it("say in doc comments what a thing does or promises", () => {
    expect(questionFaults(product)).to.deep.equal([]);
  });

  it("name limits and messages as the field does", () => {
    expect(nameFaults(core)).to.deep.equal([]);
  });

  it("have one meaning each", () => {
    expect(doubleFaults(core)).to.deep.equal([]);
  });
});

describe("questionFaults(tree)", () => {
  it("finds a question word at the beginning of a doc comment, and nowhere else", () => {
    const source =
      "/** What it is. */\n/**\n * Whether it is.\n */\n/**\n * Returns it.\n * What follows is more.\n */\n// Why: so.";
    expect(questionFaults(new Map([["core/a.ts", source]]))).to.deep.equal([
      "core/a.ts:1: a doc comment opens with `What`",
      "core/a.ts:3: a doc comment opens with `Whether`",
    ]);
  });
});

describe("nameFaults(tree)", () => {
  it("finds names in code, and none in texts and comments", () => {
    const source = 'const mostRows = 1; // tellAll\nconst text = "toldList";\ntellAgain(maxRows);';
    expect(nameFaults(new Map([["core/a.ts", source]]))).to.deep.equal([
      "core/a.ts: is called `mostRows`",
      "core/a.ts: is called `tellAgain`",
    ]);
  });
});

describe("doubleFaults(tree)", () => {
  it("finds a name that two files export, as a type or a value", () => {
    const files = {
      "core/a.ts": "export interface Page {}",
      "core/b.ts": "export class Page {}\nexport type Other = 1;",
    };
    expect(doubleFaults(new Map(Object.entries(files)))).to.deep.equal([
      "`Page` is exported by core/a.ts and core/b.ts",
    ]);
  });
});
