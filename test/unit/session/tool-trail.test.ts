import { expect } from "chai";
import { ToolTable, ToolTrail } from "../../../core/session/session-entry.ts";

const table = new ToolTable();
const named = (n: number): ReturnType<ToolTable["find"]> => table.find({ tool: `tool-${n}`, target: "files" });

describe("ToolTrail", () => {
  it("knows the last 128 tools, the one used last longest, and counts those that were new", () => {
    const trail = new ToolTrail();
    for (let n = 0; n < 128; n++) trail.add(named(n));
    trail.add(named(0));
    trail.add(named(128));
    expect([trail.has(named(0)), trail.has(named(1)), trail.has(named(128))]).to.deep.equal([true, false, true]);
    expect([trail.count, trail.digests.length]).to.deep.equal([129, 128]);
  });

  it("goes on from what is kept of it", () => {
    const trail = new ToolTrail();
    for (let n = 0; n < 130; n++) trail.add(named(n));
    const again = new ToolTrail(trail.digests, trail.count);
    again.add(named(129));
    expect([again.count, again.digests]).to.deep.equal([trail.count, trail.digests]);
  });
});

describe("ToolTable.find({ tool, target })", () => {
  it("tells tools of a name apart by their upstream, and gives each the same digest again", () => {
    const [one, other] = ["a", "b"].map((target) => table.find({ tool: "read", target }));
    expect(one?.digest).to.not.equal(other?.digest);
    expect(new ToolTable().find({ tool: "read", target: "a" })).to.deep.equal(one);
  });
});
