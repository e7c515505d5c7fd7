import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import type { ActionFacts } from "../../../core/action/action-fact.ts";
import type { PastAction } from "../../../core/action/session-state.ts";
import { SessionEntry, ToolTable } from "../../../core/session/session-entry.ts";
import { newAction } from "../../support/ledger-world.ts";

const table = new ToolTable();

const limit = { killAt: 80, windowMs: 1, mode: "enforce" } as const;

function remember(facts: Partial<ActionFacts>): SessionEntry {
  const action = newAction({ facts: { hosts: [], paths: [], more: false, effect: "read", ...facts } });
  const entry = new SessionEntry("p", limit);
  entry.remember(action, table.find(action), "allow", true, 7);
  return entry;
}

function past(facts: Partial<ActionFacts>): PastAction | undefined {
  return remember(facts).history[0];
}

describe("SessionEntry.remember(action, tool, decision, dispatched, at)", () => {
  it("tells what the action was, and what became of it", () => {
    expect(past({ hosts: ["a.example"], paths: ["/etc/x"] })).to.deep.equal({
      at: 7,
      protocol: "mcp",
      tool: "write_file",
      target: "files",
      capability: "write",
      decision: "allow",
      dispatched: true,
      hosts: ["a.example"],
      paths: ["/etc/x"],
    });
  });

  it("keeps four hosts and four paths, and none of more than 256 characters", () => {
    const long = `/${"x".repeat(256)}`;
    const many = ["/1", long, "/2", "/3", "/4", "/5"];
    expect(past({ paths: many, hosts: many })).to.deep.include({
      paths: ["/1", "/2", "/3", "/4"],
      hosts: ["/1", "/2", "/3", "/4"],
    });
    const largest = remember({ paths: Array(9).fill(long.slice(1)), hosts: Array(9).fill(long.slice(1)) });
    expect(largest.historySize).to.be.below(3_000);
  });

  it("keeps nothing of the text that a path was cut out of", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const kept: unknown[] = [];
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let n = 0; n < 200; n++) {
      const body = `${"x".repeat(1_000_000)} /srv/notes/number-${n}.md`;
      kept.push(past({ paths: [body.slice(1_000_001)] }));
    }
    collect();
    expect(process.memoryUsage().heapUsed - before).to.be.below(50_000_000);
    expect(kept.length).to.equal(200);
  });
});
