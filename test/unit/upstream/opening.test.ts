import { expect } from "chai";
import { Opening } from "../../../core/upstream/opening.ts";
import { call, closeAll, fault, hostile, openFleet, scope, until } from "./fixture.ts";

describe("Opening", () => {
  let now: number;
  let finish: { readonly resolve: (opened: string) => void; readonly reject: (error: unknown) => void };
  let starts: number;

  beforeEach(() => {
    [now, starts] = [1_000, 0];
  });

  function opening(startTimeoutMs = 60_000): Opening<string> {
    return new Opening({
      upstream: "up",
      startTimeoutMs,
      clock: () => now,
      open: () => {
        starts++;
        return new Promise((resolve, reject) => {
          finish = { resolve, reject };
        });
      },
    });
  }

  it("opens once for all who wait, and anew after that", async () => {
    const one = opening();
    const waiting = [one.wait(), one.wait(), one.run()];
    finish.resolve("a");
    expect(await Promise.all(waiting)).to.deep.equal(["a", "a", "a"]);
    expect(one.claimMissed()).to.equal(false);
    const again = one.wait();
    finish.resolve("b");
    expect([await again, starts]).to.deep.equal(["b", 2]);
  });

  it("is not waited for after its first 8 s, goes on, and knows that it was missed, once", async () => {
    const one = opening();
    const running = one.run();
    now += 8_000;
    expect(await fault(one.wait())).to.equal(
      "UPSTREAM_STARTING upstream is starting: `up` has been starting for 8 s; try again in 5 s",
    );
    now += 50_000;
    expect(await fault(one.wait())).to.match(/has been starting for 58 s; try again in 2 s$/);
    now += 10_000;
    expect(await fault(one.wait())).to.match(/; try again in 1 s$/);
    finish.resolve("late");
    expect([await running, starts]).to.deep.equal(["late", 1]);
    expect([one.claimMissed(), one.claimMissed()]).to.deep.equal([true, false]);
  });

  it("is waited for to its end where it may take no longer than that", async () => {
    const one = opening(8_000);
    const waiting = fault(one.wait());
    now += 8_000;
    const late = fault(one.wait());
    finish.reject(new Error("the end"));
    expect(await Promise.all([waiting, late])).to.deep.equal(["Error: the end", "Error: the end"]);
    expect(one.claimMissed()).to.equal(true);
  });
});

describe("the state of an upstream", () => {
  afterEach(closeAll);

  const stateOf = ({ fleet }: ReturnType<typeof openFleet>): string | undefined => fleet.health()[0]?.state;

  it("is starting, then up; and idle where sessions have connections of their own and none is there", async () => {
    for (const [connection, expected] of [
      ["shared", "up"],
      ["session", "idle"],
    ] as const) {
      const fixture = openFleet([hostile("", { connection })]);
      expect(stateOf(fixture)).to.equal("idle");
      fixture.fleet.start();
      await until(() => stateOf(fixture) === "starting");
      await until(() => stateOf(fixture) === expected);
      expect(fixture.events.map(({ kind }) => kind)).to.include.members(["upstream_starting", "upstream_connected"]);
    }
  });

  it("is down with its reason while it is tried again and again, and so is a call", async () => {
    const fixture = openFleet([hostile("die", { toolPrefix: "p_" })]);
    fixture.fleet.start();
    const failures = (): number => fixture.events.filter(({ kind }) => kind === "upstream_failed").length;
    await until(() => failures() >= 3, 20_000);
    expect(fixture.fleet.health()[0]).to.deep.include({
      state: "down",
      reason: "upstream unavailable: the process ended (exit code 3)",
    });
    const group = fixture.fleet.group(scope());
    expect(await fault(Promise.resolve(group.tool("p_any")))).to.match(
      /^UPSTREAM_UNAVAILABLE upstream unavailable: the process ended \(exit code 3\)/,
    );
    expect(await group.tool("any")).to.equal(undefined);
    expect((await group.servers()).map(({ capabilities }) => capabilities)).to.deep.equal([
      { tools: { listChanged: true } },
    ]);
  });

  it("leaves the only place to a session", async () => {
    const { fleet } = openFleet([hostile("", { maxConnections: 1 })]);
    fleet.start();
    expect("result" in (await call(fleet.group(scope()), "echo"))).to.equal(true);
    expect(fleet.health()[0]?.connections).to.equal(1);
  });

  it("is asked for its era once: further connections speak it at once", async () => {
    const { fleet } = openFleet([hostile("", { connection: "session" })]);
    const groups = [1, 2].map(() => fleet.group(scope({ era: "modern" })));
    for (const [index, group] of groups.entries()) {
      const response = await call(group, "received");
      const received = "result" in response ? JSON.stringify(response.result) : "";
      expect(received.includes("server/discover"), `connection ${index}`).to.equal(index === 0);
    }
  });
});
