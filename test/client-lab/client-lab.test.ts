import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { cells } from "./cell.ts";
import { apiName, pageFile, pageOf } from "./page.ts";
import { type LabRun, rows, runAll } from "./run.ts";
import { steps } from "./task.ts";

describe("clients that nobody here wrote, unchanged, in front of a gateway", function () {
  this.timeout(600_000);
  let runs: readonly LabRun[];

  before(async () => {
    runs = await runAll();
  });

  for (const [index, row] of rows.entries()) {
    describe(`${row.client}, model API: ${apiName(row)}, MCP over ${row.mcp}`, () => {
      for (const [name, faultOf] of Object.entries(cells)) {
        it(name, () => {
          const run = runs[index] as LabRun;
          expect(faultOf(run)).to.equal(undefined);
        });
      }
    });
  }

  it("are not said to work where they did nothing, or where everything reached the server", () => {
    const [row] = rows as [LabRun["row"]];
    const idle: LabRun = {
      row,
      output: "",
      told: [],
      writesWhileHeld: undefined,
      calls: [],
      asked: [],
      hosts: ["x.example"],
    };
    const all = Object.values(steps).map(({ tool, args }) => ({ name: tool, arguments: args }));
    const ungoverned: LabRun = {
      ...idle,
      told: all.map((call) => JSON.stringify(call)),
      writesWhileHeld: 1,
      calls: all,
    };
    const names = Object.keys(cells);
    expect(names.filter((name) => cells[name]?.(idle) === undefined)).to.deep.equal([]);
    expect(names.filter((name) => cells[name]?.(ungoverned) === undefined)).to.deep.equal([
      "allowed",
      "approved while it waits",
    ]);
  });

  it("are on the page as they were found; `npm run client-lab` writes it", async () => {
    expect(await readFile(pageFile, "utf8")).to.equal(pageOf(runs));
  });
});
