import { expect } from "chai";
import { requirements } from "../requirements.ts";
import { securityRequirements } from "../security-requirements.ts";
import { parseRequirements } from "../support/requirement-table.ts";
import { tieFaults } from "./requirement-tie.ts";
import { readSourceTree } from "./source-tree.ts";

const all = [...requirements, ...securityRequirements];

describe("the requirements", () => {
  it("are tied to tests, both ways", () => {
    expect(tieFaults(all, readSourceTree(["test"], [".test.ts"]))).to.deep.equal([]);
  });

  it("cover all nine parts of the specification", () => {
    const parts = new Set(requirements.map(({ section }) => section.slice(0, 1)));
    expect([...parts].join("")).to.equal("123456789");
  });

  it("cover the first 91 lines of security requirements, each once and in order", () => {
    const ids = securityRequirements.map(({ id }) => id);
    expect(ids).to.deep.equal(Array.from({ length: 91 }, (_, index) => `S${index + 1}`));
  });

  it("are each promised by an issue", () => {
    const issues = new Set(all.flatMap((requirement) => requirement.issues));
    expect([...issues].sort((a, b) => a - b)).to.deep.equal([2, 3, 4, 5, 6, 7, 8, 16, 17, 18, 20, 22]);
  });
});

describe("tieFaults(requirements, tests)", () => {
  const rows = parseRequirements(`
## 1 First
R1-1 | 2 | met  | It is so.
R1-2 | 3 | open | It will be so.
S1   | 2, 3 | met | It is safe.
`);
  const faults = (source: string): readonly string[] => tieFaults(rows, new Map([["test/a.test.ts", source]]));
  /** Written apart, so that the check of this folder does not take it for a title. */
  const titled = (words: string): string => `it${"("}"${words}", () => {});`;

  it("is content when each met row is named, alone or with others", () => {
    expect(faults(titled("is so [R1-1, S1]"))).to.deep.equal([]);
    expect(faults(`describe${"("}\n  "is so [R1-1]",\n  f);\nit${"("}\`is safe [S1] for \${who}\`, f);`)).to.deep.equal(
      [],
    );
  });

  it("misses a met row that no test names", () => {
    expect(faults(titled("is so [R1-1]"))).to.deep.equal(["S1 is met, but no test names it: It is safe."]);
  });

  it("holds a row that is met in part to the same", () => {
    const shared = parseRequirements("## 1 First\nS1 | 2, 3 | part | It is safe.");
    expect(tieFaults(shared, new Map([["test/a.test.ts", titled("is so [S1]")]]))).to.deep.equal([]);
    expect(tieFaults(shared, new Map())).to.deep.equal(["S1 is met in part, but no test names it: It is safe."]);
  });

  it("does not take a comment or another string for a test", () => {
    expect(faults(`// [R1-1]\nconst name = "[S1]";`)).to.have.length(2);
  });

  it("refuses a test that names an open row or an unknown one", () => {
    expect(faults(titled("does all [R1-1] [S1] [R1-2] [S2]"))).to.deep.equal([
      "test/a.test.ts: `does all [R1-1] [S1] [R1-2] [S2]` names R1-2, which is open",
      "test/a.test.ts: `does all [R1-1] [S1] [R1-2] [S2]` names S2, which is unknown",
    ]);
  });
});

describe("parseRequirements(table)", () => {
  it("refuses a row it cannot read, a second row of one id and a row without section", () => {
    expect(() => parseRequirements("## 1 A\nR1-1 | two | met | It.")).to.throw(
      "expected `id | issues | met, part or open | sentence`, got `R1-1 | two | met | It.`",
    );
    expect(() => parseRequirements("## 1 A\nR1-1 | 2 | met | It.\nR1-1 | 2 | open | It.")).to.throw(
      "requirement `R1-1` comes twice",
    );
    expect(() => parseRequirements("## 1 A\nR1-1 | 2 | part | It.")).to.throw(
      "expected several issues to share `R1-1 | 2 | part | It.`",
    );
    expect(() => parseRequirements("R1-1 | 2 | met | It.")).to.throw(
      "expected a `## section` before `R1-1 | 2 | met | It.`",
    );
  });
});
