import { expect } from "chai";
import { SessionEntry, ToolTable } from "../../../core/session/session-entry.ts";
import { newAction } from "../../support/ledger-world.ts";

const table = new ToolTable();
const named = (n: number): ReturnType<ToolTable["find"]> => table.find({ tool: `tool-${n}`, target: "files" });

const limit = { killAt: 80, windowMs: 1, mode: "enforce" } as const;

function use(entry: SessionEntry, n: number): void {
  entry.remember(newAction(), named(n), "allow", true, 1);
}

describe("the tools of a SessionEntry", () => {
  it("knows the last 128 tools, the one used last longest, and counts those that were new", () => {
    const entry = new SessionEntry("p", limit);
    for (let n = 0; n < 128; n++) use(entry, n);
    use(entry, 0);
    use(entry, 128);
    expect([0, 1, 128].map((n) => entry.state(named(n), 1, entry).new_tool)).to.deep.equal([false, true, false]);
    expect([entry.state(named(0), 1, entry).tools, entry.head().tools.length]).to.deep.equal([129, 128]);
  });

  it("goes on from what is kept of it", () => {
    const entry = new SessionEntry("p", limit);
    for (let n = 0; n < 130; n++) use(entry, n);
    const again = new SessionEntry("p", limit, entry.head());
    use(again, 129);
    const { tools, tool_count: count } = entry.head();
    expect(again.head()).to.deep.include({ tools, tool_count: count });
  });
});

describe("ToolTable.find({ tool, target })", () => {
  it("tells tools of a name apart by their upstream, and gives each the same digest again", () => {
    const [one, other] = ["a", "b"].map((target) => table.find({ tool: "read", target }));
    expect(one?.digest).to.not.equal(other?.digest);
    expect(new ToolTable().find({ tool: "read", target: "a" })).to.deep.equal(one);
  });
});
