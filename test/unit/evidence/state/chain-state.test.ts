import { expect } from "chai";
import type { ActionRecord } from "../../../../core/evidence/record/record.ts";
import { emptyState, StateChange } from "../../../../core/evidence/state/chain-state.ts";
import { StateMap } from "../../../../core/evidence/state/state-map.ts";
import { saltOf } from "../../../support/state-world.ts";

const sessions = 2_000;

async function* noLeaves(): AsyncGenerator<string> {}

describe("StateChange", () => {
  it("lets others have a turn between some sessions, and between some pages of them [S76]", async () => {
    const change = new StateChange(emptyState);
    for (let seq = 0; seq < sessions; seq++) {
      const record = { kind: "decision", seq, session: { id: `session ${seq}` }, principal: { id: "one" } };
      change.accept(record as unknown as ActionRecord);
    }
    const map = new StateMap("", async () => undefined, saltOf);
    let turns = 0;
    const state = await change.apply(map, sessions, noLeaves(), async () => turns++);
    const pages = map.changes().length;
    expect(pages).to.be.above(200);
    expect(turns).to.be.at.least(Math.floor(sessions / 64) + Math.floor(pages / 64));
    expect(state).to.deep.include({ size: sessions, map: await map.root() });
  });
});
