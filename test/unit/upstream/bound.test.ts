import { expect } from "chai";
import { GatewayError } from "../../../core/action/error.ts";
import { Backoff } from "../../../core/upstream/backoff.ts";
import { CachedList } from "../../../core/upstream/catalog.ts";
import { LogLines } from "../../../core/upstream/stdio-pipe.ts";
import { FloodGate } from "../../../core/upstream/transport.ts";
import { fault } from "./fixture.ts";

function setClock(now = 1_000_000): { clock: () => number; pass: (ms: number) => void } {
  let time = now;
  return {
    clock: () => time,
    pass: (ms) => {
      time += ms;
    },
  };
}

describe("FloodGate", () => {
  it("admits 5,000 messages at once and 1,000 a second after that", () => {
    const { clock, pass } = setClock();
    const gate = new FloodGate(clock);
    const admit = (count: number): void => {
      for (let each = 0; each < count; each++) gate.admit(10);
    };
    admit(5_000);
    expect(() => admit(1)).to.throw(GatewayError, "the upstream floods the gateway with messages");
    pass(2_000);
    admit(1_000);
  });

  it("counts each started 4 KiB of a message as one more", () => {
    const gate = new FloodGate(setClock().clock);
    gate.admit(4_096 * 4_999);
    expect(() => gate.admit(1)).to.throw(GatewayError, "the upstream floods the gateway with messages");
  });
});

describe("Backoff", () => {
  it("doubles the delay up to ten seconds", () => {
    const backoff = new Backoff(setClock().clock, () => Uint8Array.of(255));
    const delays = Array.from({ length: 8 }, () => backoff.failed());
    expect(delays).to.deep.equal([200, 399, 798, 1_597, 3_194, 6_388, 9_980, 9_980]);
  });

  it("spreads the delay over its upper half", () => {
    const backoff = new Backoff(setClock().clock, () => Uint8Array.of(0));
    expect([backoff.failed(), backoff.failed()]).to.deep.equal([100, 200]);
  });

  it("forgets the failures before something that held ten seconds", () => {
    const { clock, pass } = setClock();
    const backoff = new Backoff(clock, () => Uint8Array.of(0));
    backoff.failed();
    backoff.failed();
    backoff.opened();
    pass(10_000);
    expect(backoff.failed()).to.equal(100);
    backoff.opened();
    pass(9_999);
    expect(backoff.failed()).to.equal(200);
  });

  it("lets nobody wait for more than a second", async () => {
    const { clock } = setClock();
    const backoff = new Backoff(clock, () => Uint8Array.of(255));
    for (let failures = 0; failures < 4; failures++) backoff.failed();
    expect(await fault(backoff.wait())).to.equal(
      "UPSTREAM_UNAVAILABLE upstream unavailable: the last attempt failed; the next one is in 1597 ms",
    );
  });
});

describe("CachedList", () => {
  function list(answers: readonly (string | Error)[]): {
    cached: CachedList<string>;
    pass: (ms: number) => void;
    reads: () => number;
    faults: unknown[];
  } {
    const { clock, pass } = setClock();
    const faults: unknown[] = [];
    let reads = 0;
    const load = async (): Promise<string> => {
      const answer = answers[reads++] ?? "more";
      if (answer instanceof Error) throw answer;
      return answer;
    };
    return { cached: new CachedList(load, clock, (error) => faults.push(error)), pass, reads: () => reads, faults };
  }

  it("is read once by all who ask at the same time, and again after a minute", async () => {
    const { cached, pass, reads } = list(["one", "two"]);
    expect(await Promise.all([cached.read(), cached.read()])).to.deep.equal(["one", "one"]);
    pass(59_999);
    expect(cached.read()).to.equal("one");
    expect(reads()).to.equal(1);
    pass(1);
    expect(await cached.read()).to.equal("two");
  });

  it("is read again once it is known to have changed", async () => {
    const { cached } = list(["one", "two"]);
    await cached.read();
    cached.invalidate();
    expect(cached.isChanged).to.equal(true);
    expect(await cached.read()).to.equal("two");
    expect(cached.isChanged).to.equal(false);
  });

  it("keeps the last good list when a reading fails, and tries again after a second", async () => {
    const { cached, pass, reads, faults } = list(["one", new Error("down"), "three"]);
    await cached.read();
    cached.invalidate();
    expect(await cached.read()).to.equal("one");
    expect(faults).to.have.length(1);
    await cached.read();
    expect(reads()).to.equal(2);
    pass(1_000);
    expect(cached.read()).to.equal("one");
    await cached.refresh();
    expect(cached.read()).to.equal("three");
  });

  it("is waited for again after a failure once it is known to have changed", async () => {
    const { cached } = list([new Error("down"), "two"]);
    expect(await cached.read()).to.equal(undefined);
    expect(cached.isChanged).to.equal(false);
    cached.invalidate();
    expect(await cached.read()).to.equal("two");
  });

  it("is not refreshed twice in a second", async () => {
    const { cached, pass, reads } = list([]);
    await cached.refresh();
    await cached.refresh();
    expect(reads()).to.equal(1);
    pass(1_000);
    await cached.refresh();
    expect(reads()).to.equal(2);
  });
});

describe("LogLines", () => {
  it("keeps the first 2,048 bytes of a line, and reports how many lines it dropped", () => {
    const { clock, pass } = setClock();
    const lines: string[] = [];
    const log = new LogLines(clock, (line) => lines.push(line));
    log.push(Buffer.from(`${"a".repeat(3_000)}\n`));
    for (let count = 0; count < 100; count++) log.push(Buffer.from(`line ${count}\n`));
    expect(lines).to.have.length(50);
    expect(lines[0]).to.have.length(2_048);
    pass(1_000);
    log.push(Buffer.from("again"));
    log.flush();
    expect(lines.slice(50)).to.deep.equal(["(51 lines dropped)", "again"]);
  });
});
