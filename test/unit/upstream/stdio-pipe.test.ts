import { expect } from "chai";
import { StdioPipe } from "../../../core/upstream/stdio-pipe.ts";
import { bounds, call, closeAll, fault, hostile, isAlive, openGroup, textOf, until } from "./fixture.ts";

describe("an upstream over stdio", () => {
  afterEach(closeAll);

  it("gets PATH, HOME, LANG, TMPDIR and what is configured, and nothing else of the gateway's environment", async () => {
    process.env.GATEWAY_SECRET = "hush";
    const { group } = openGroup(hostile("", {}, { TOKEN: "t" }));
    const env = JSON.parse(textOf(await call(group, "env")));
    delete process.env.GATEWAY_SECRET;
    expect(Object.keys(env)).to.include.members(["PATH", "TOKEN", "START"]);
    expect(
      Object.keys(env).filter((name) => !["PATH", "HOME", "LANG", "TMPDIR", "TOKEN", "START"].includes(name)),
    ).to.deep.equal([]);
  });

  it("hands its standard error over line by line, the first 2,048 bytes of each", async () => {
    const { group, events } = openGroup(hostile());
    await group.open();
    const lines = (): string[] =>
      events.flatMap((event) => (event.kind === "upstream_output_logged" ? [event.line] : []));
    await until(() => lines().length === 2);
    expect(lines()).to.deep.equal(["x".repeat(2_048), "second line"]);
  });

  it("may print a banner before its first message", async () => {
    const { group, events } = openGroup(hostile("banner"));
    expect(textOf(await call(group, "echo"))).to.equal('{"name":"echo","arguments":{}}');
    expect(events).to.deep.include({ kind: "upstream_output_logged", upstream: "up", line: "Welcome to my server!" });
  });

  it("refuses what cannot be started and says why", async () => {
    const { group } = openGroup({ ...hostile(), command: "/no/such/program" });
    expect(await fault(call(group, "echo"))).to.equal(
      "UPSTREAM_UNAVAILABLE upstream unavailable: cannot start `/no/such/program`: ENOENT",
    );
  });

  it("refuses one that ends at once", async () => {
    const { group } = openGroup(hostile("die"));
    expect(await fault(call(group, "echo"))).to.equal(
      "UPSTREAM_UNAVAILABLE upstream unavailable: the process ended (exit code 3)",
    );
  });

  it("gives up on one that never answers the handshake, and leaves no process", async () => {
    const { group } = openGroup(hostile("hang", { startTimeoutMs: 300, protocol: "legacy" }));
    expect(await fault(call(group, "echo"))).to.match(
      /^UPSTREAM_TIMEOUT upstream did not answer in time: expected an answer to `initialize` within \d+ ms$/,
    );
  });

  describe("when it dies", () => {
    it("rejects what is in flight at once, tells the listener, and is started again", async () => {
      const closed: string[] = [];
      const { group } = openGroup(hostile(), {
        listener: {
          onNotification: () => undefined,
          onRequest: () => Promise.reject(),
          onClose: (_, reason) => closed.push(reason),
        },
      });
      const waiting = fault(call(group, "hang"));
      expect(await fault(call(group, "die"))).to.match(/^UPSTREAM_UNAVAILABLE .*the process ended \(exit code 7\)$/);
      expect(await waiting).to.match(/^UPSTREAM_UNAVAILABLE .*the process ended \(exit code 7\)$/);
      expect(closed).to.deep.equal(["upstream unavailable: the process ended (exit code 7)"]);
      expect(textOf(await call(group, "echo"))).to.equal('{"name":"echo","arguments":{}}');
    });

    it("still delivers its last words", async () => {
      const { group } = openGroup(hostile());
      expect(textOf(await call(group, "answer_and_die"))).to.equal("last words");
    });

    it("has ended only once what it wrote is read, however long that is held up", async () => {
      const program = "for (let at = 0; at < 40_000; at++) console.log(JSON.stringify({ at }))";
      const config = { ...hostile(), args: ["-e", program] };
      const pipe = new StdioPipe(config, { bytes: 1_000, json: bounds }, Date.now, () => undefined);
      const heard: string[] = [];
      const ended = new Promise<void>((resolve) => {
        pipe.listen({
          onMessage: (data) => {
            heard.push(String(data));
            if (heard.length === 10) pipe.pause();
          },
          onLongMessage: () => heard.push("too long"),
          onEnd: ({ message }) => resolve(void heard.push(message)),
        });
      });
      await until(() => heard.length >= 10);
      await new Promise((resolve) => setTimeout(resolve, 700));
      const held = heard.length;
      expect(held).to.be.below(20_000);
      pipe.resume();
      await ended;
      expect(heard.slice(0, -1)).to.deep.equal(Array.from({ length: 40_000 }, (_, at) => JSON.stringify({ at })));
      expect(heard.at(-1)).to.include("the process ended (exit code 0)");
      await pipe.close();
    });

    it("waits longer each time", async () => {
      const { group, events } = openGroup(hostile());
      await fault(call(group, "die"));
      await fault(call(group, "die"));
      await fault(call(group, "die"));
      const pauses = events.flatMap((event) => (event.kind === "upstream_retry_scheduled" ? [event] : []));
      expect(pauses.map(({ failures }) => failures)).to.deep.equal([1, 2, 3]);
      expect(pauses.map(({ delayMs }, at) => delayMs >= 100 * 2 ** at && delayMs <= 200 * 2 ** at)).to.deep.equal([
        true,
        true,
        true,
      ]);
    });
  });

  it("is killed with everything it started, even when it ignores SIGTERM", async () => {
    const { group, fleet } = openGroup(hostile("ignore-term"));
    const child = Number(textOf(await call(group, "spawn")));
    expect(isAlive(child)).to.equal(true);
    await fleet.close();
    await until(() => !isAlive(child));
  });

  it("refuses requests once it leaves 8 MiB of its input unread", async () => {
    const { group } = openGroup(hostile());
    await call(group, "stop_reading");
    const blob = "b".repeat(1_000_000);
    const faults = await Promise.all(Array.from({ length: 12 }, () => fault(call(group, "echo", { blob }))));
    expect(faults.filter((text) => text.startsWith("UPSTREAM_BUSY")).length).to.be.within(1, 4);
    expect(faults.find((text) => text.startsWith("UPSTREAM_BUSY"))).to.equal(
      "UPSTREAM_BUSY upstream has no free connection: the process left 8388608 bytes of its input unread",
    );
  });
});
