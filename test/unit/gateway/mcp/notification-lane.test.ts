import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { LaneTable, NotificationLane } from "../../../../core/gateway/mcp/notification.ts";

describe("NotificationLane.enqueue(bytes, turn)", () => {
  it("lets each go once the one before it is gone, however long that takes", async () => {
    const [lane, gone] = [new NotificationLane(), [] as number[]];
    for (const [at, ms] of [20, 0, 10].entries()) {
      lane.enqueue(1, async () => {
        await sleep(ms);
        gone.push(at);
      });
    }
    expect(lane.idle).to.equal(false);
    await lane.settled;
    expect(gone).to.deep.equal([0, 1, 2]);
    expect(lane.idle).to.equal(true);
  });

  it("has room for 1,024, and for 4 MiB, and again once they are gone", async () => {
    const pass = async (): Promise<void> => undefined;
    const [many, large] = [new NotificationLane(), new NotificationLane()];
    for (let count = 0; count < 1_024; count++) expect(many.enqueue(1, pass)).to.equal(true);
    expect(many.enqueue(1, pass)).to.equal(false);
    expect(large.enqueue(4 * 1024 * 1024, pass)).to.equal(true);
    expect(large.enqueue(1, pass)).to.equal(false);
    await Promise.all([many.settled, large.settled]);
    expect(many.enqueue(1, pass)).to.equal(true);
    expect(large.enqueue(4 * 1024 * 1024, pass)).to.equal(true);
  });

  it("tells a turn that it comes late after 2 s", async () => {
    const [lane, late] = [new NotificationLane(), [] as boolean[]];
    const note = (ms: number): boolean =>
      lane.enqueue(1, async (isLate) => {
        late.push(isLate);
        await sleep(ms);
      });
    note(2_100);
    note(0);
    await lane.settled;
    expect(late).to.deep.equal([false, true]);
  });
});

describe("LaneTable.of(upstream)", () => {
  it("keeps upstreams from holding up one another", async () => {
    const [lanes, gone] = [new LaneTable(), [] as string[]];
    const enter = (upstream: string, ms: number): void => {
      lanes.of(upstream).enqueue(1, async () => {
        await sleep(ms);
        gone.push(upstream);
      });
    };
    enter("slow", 40);
    enter("quick", 0);
    await lanes.of("quick").settled;
    expect(gone).to.deep.equal(["quick"]);
    await lanes.of("slow").settled;
    expect(gone).to.deep.equal(["quick", "slow"]);
  });
});
