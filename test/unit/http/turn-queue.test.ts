import { mock } from "node:test";
import { expect } from "chai";
import { TurnQueue } from "../../../core/http/fair-share.ts";

describe("TurnQueue", () => {
  let queue: TurnQueue;
  let seen: string[];
  let now: number;
  let isWanted: boolean;
  beforeEach(() => {
    [seen, now, isWanted] = [[], 1_000, false];
    queue = new TurnQueue(
      () => now,
      () => isWanted,
    );
  });

  const enter = (tenant: string, name: string, work: "new" | "begun" = "new"): void =>
    queue.enter(tenant, work, () => seen.push(name));
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it("gives one turn of the event loop to each, so that others are served between them [S77]", async () => {
    for (const name of ["1", "2", "3"]) enter("a", name);
    for (const count of [1, 2, 3, 3]) {
      await turn();
      expect(seen).to.have.length(count);
    }
    enter("a", "4");
    await turn();
    expect(seen).to.deep.equal(["1", "2", "3", "4"]);
  });

  it("serves the tenants in turn, however much one of them has [S77]", async () => {
    for (let n = 0; n < 4; n++) enter("a", `a${n}`);
    enter("b", "b0");
    enter("c", "c0");
    enter("b", "b1");
    for (let n = 0; n < 7; n++) await turn();
    expect(seen).to.deep.equal(["a0", "b0", "c0", "a1", "b1", "a2", "a3"]);
  });

  it("lets what has begun go on before more begins", async () => {
    enter("a", "1");
    enter("a", "2");
    enter("a", "of 0", "begun");
    for (let n = 0; n < 3; n++) await turn();
    expect(seen).to.deep.equal(["of 0", "1", "2"]);
  });

  it("gives a turn that is asked for in one the next", async () => {
    queue.enter("a", "new", () => {
      seen.push("first");
      enter("a", "second", "begun");
    });
    await turn();
    expect(seen).to.deep.equal(["first"]);
    await turn();
    expect(seen).to.deep.equal(["first", "second"]);
  });

  describe("while others want the thread", () => {
    const { timers } = mock;
    beforeEach(() => {
      timers.enable({ apis: ["setTimeout"] });
      isWanted = true;
    });
    afterEach(() => timers.reset());

    /** Enters work whose turn takes so long, in the promises that it settles. */
    function enterLong(name: string, ms: number): void {
      queue.enter("a", "new", () => {
        void Promise.resolve().then(() => {
          now += ms;
          seen.push(name);
        });
      });
    }

    it("leaves as much time without a turn as the last one took, also to work that comes later [S77]", async () => {
      enterLong("1", 40);
      enterLong("2", 10);
      await turn();
      await turn();
      expect(seen).to.deep.equal(["1"]);
      timers.tick(39);
      expect(seen).to.deep.equal(["1"]);
      timers.tick(1);
      await turn();
      expect(seen).to.deep.equal(["1", "2"]);
      now += 4;
      enterLong("3", 10);
      timers.tick(5);
      await turn();
      expect(seen).to.deep.equal(["1", "2"]);
      timers.tick(1);
      await turn();
      expect(seen).to.deep.equal(["1", "2", "3"]);
    });

    it("leaves none once nobody else does", async () => {
      enterLong("1", 40);
      enterLong("2", 40);
      isWanted = false;
      await turn();
      await turn();
      expect(seen).to.deep.equal(["1", "2"]);
    });
  });
});
