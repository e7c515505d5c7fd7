import { expect } from "chai";
import { type Column, renderTable } from "../../../core/cli/table.ts";

interface Row {
  readonly name: string;
  readonly note: string;
  readonly count: number;
}

const columns: readonly Column<Row>[] = [
  { title: "name", of: ({ name }) => name },
  { title: "count", isNumber: true, of: ({ count }) => count },
  { title: "note", of: ({ note }) => note },
];

describe("renderTable(columns, rows, width)", () => {
  it("aligns texts at their beginning and numbers at their end, and leaves no space behind", () => {
    const rows = [
      { name: "a", count: 7, note: "first" },
      { name: "longer", count: 1_234_567, note: "" },
    ];
    expect(renderTable(columns, rows)).to.deep.equal([
      "name        count  note",
      "a               7  first",
      "longer  1,234,567",
    ]);
  });

  it("escapes what a terminal would obey, and what a reader would not see", () => {
    const [, line] = renderTable(columns, [{ name: "\u001b[2Jx", count: 1, note: "a\u202eb\nc" }]);
    expect(line).to.equal("\\u{1b}[2Jx      1  a\\u{202e}b\\u{a}c");
  });

  it("cuts no id, and leaves text that is printable already as it is", () => {
    const ids: readonly Column<Row>[] = [
      { title: "id", of: ({ name }) => name, isWhole: true },
      { title: "note", of: ({ note }) => note, isPrintable: true },
    ];
    const [, line] = renderTable(ids, [{ name: "i".repeat(60), count: 0, note: `\\u{202e}${"x".repeat(40)}` }], 70);
    expect(line).to.equal(`${"i".repeat(60)}  \\u{202e}xxx…`);
  });

  const wide = [
    { name: "n".repeat(40), count: 123_456_789, note: "x".repeat(70) },
    { name: "short", count: 1, note: "y".repeat(30) },
  ];

  for (const width of [40, 60, 80, 100, 132]) {
    it(`takes no more than ${width} characters of a line, and cuts no number`, () => {
      const lines = renderTable(columns, wide, width);
      for (const line of lines) expect(Array.from(line).length).to.be.at.most(width);
      expect(lines[1]).to.include("123,456,789");
    });
  }

  it("cuts the longest text first, and says so", () => {
    const [, line] = renderTable(columns, wide, 100);
    expect(line).to.equal(`${"n".repeat(40)}  123,456,789  ${"x".repeat(44)}…`);
  });

  it("cuts nothing where it may be as wide as it is", () => {
    expect(renderTable(columns, wide)[1]).to.equal(`${"n".repeat(40)}  123,456,789  ${"x".repeat(70)}`);
  });

  it("leaves 12 characters of each text, however narrow", () => {
    expect(renderTable(columns, wide, 1)[1]).to.equal(`${"n".repeat(11)}…  123,456,789  ${"x".repeat(11)}…`);
  });
});
