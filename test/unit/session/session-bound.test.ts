import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { newAction } from "../../support/ledger-world.ts";
import { SessionWorld } from "../../support/session-world.ts";

const maxActive = 500;
const sessions = 20_000;

describe("SessionWatch with many more sessions than it may keep in memory", () => {
  let world: SessionWorld;

  before(async () => {
    world = await SessionWorld.create({ maxActive });
  });

  after(() => world.remove());

  it("keeps as many as it may, each with a tool of its own, in memory that does not grow [S68]", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const heap = (): number => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    await begin(0, sessions / 4);
    const before = heap();
    await begin(sessions / 4, sessions);
    expect(world.observed.watched).to.equal(maxActive);
    // What grows is the evidence's own memory of the last sessions, which is bounded too. Were none folded, it would be 35 MB.
    expect(heap() - before).to.be.below(20_000_000);
    const state = world.watch.describe(newAction({}, "many-0")).session_state;
    expect(state).to.include({ actions: 1, tools: 1 });
  });

  async function begin(from: number, end: number): Promise<void> {
    for (let first = from; first < end; first += 500) {
      const some = Array.from({ length: 500 }, (_, n) => newAction({ tool: `tool-${first + n}` }, `many-${first + n}`));
      await Promise.all(
        some.map(async (action) => {
          await world.decide(action);
          await world.ledger.actions.recordOutcome(action, { status: "success", output: {} });
        }),
      );
    }
  }
});
