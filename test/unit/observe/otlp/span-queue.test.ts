import { randomBytes } from "node:crypto";
import { mock } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { expect } from "chai";
import { type Delivery, SpanQueue } from "../../../../core/observe/otlp/sender.ts";

const delays = { firstMs: 1, maxMs: 2 };

function spans(count: number): ReadableSpan[] {
  return Array.from({ length: count }, (_, at) => ({ name: String(at) }) as ReadableSpan);
}

interface Rig {
  readonly queue: SpanQueue;
  readonly batches: number[];
  readonly counts: Record<"sent" | "failed" | "dropped", number>;
}

/** A queue whose collector answers as `send` does. */
function rig(most: number, send: (turn: number) => Promise<Delivery>): Rig {
  const batches: number[] = [];
  const counts = { sent: 0, failed: 0, dropped: 0 };
  const queue = new SpanQueue({
    maxWaiting: most,
    delays,
    random: randomBytes,
    send: (batch) => send(batches.push(batch.length)),
    count: (result, count) => {
      counts[result] += count;
    },
  });
  return { queue, batches, counts };
}

describe("SpanQueue", () => {
  it("sends what has gathered in requests of at most 256", async () => {
    const { queue, batches, counts } = rig(10_000, async () => "sent");
    for (const span of spans(600)) queue.onEnd(span);
    await queue.forceFlush();
    expect(batches).to.deep.equal([256, 256, 88]);
    expect(counts).to.deep.equal({ sent: 600, failed: 0, dropped: 0 });
  });

  it("lets no more wait than it may, one request under way", async () => {
    let answer = (_: Delivery): void => undefined;
    const { queue, batches, counts } = rig(512, () => new Promise((resolve) => (answer = resolve)));
    for (const span of spans(5_000)) queue.onEnd(span);
    expect(batches).to.deep.equal([256]);
    expect(counts).to.deep.equal({ sent: 0, failed: 0, dropped: 5_000 - 256 - 512 });
    const flushed = queue.forceFlush();
    for (let turn = 0; turn < 3; turn++) {
      answer("sent");
      await new Promise((resolve) => setImmediate(resolve));
    }
    await flushed;
    expect(counts.sent).to.equal(256 + 512);
  });

  it("tries again what may be taken later, four times in all", async () => {
    const { queue, batches, counts } = rig(512, async (turn) => (turn < 4 ? "again" : "sent"));
    queue.onEnd(spans(1)[0] as ReadableSpan);
    await queue.forceFlush();
    expect(batches).to.deep.equal([1, 1, 1, 1]);
    expect(counts).to.deep.equal({ sent: 1, failed: 0, dropped: 0 });
    const never = rig(512, async () => "again");
    never.queue.onEnd(spans(1)[0] as ReadableSpan);
    await never.queue.forceFlush();
    expect(never.batches).to.have.length(4);
    expect(never.counts).to.deep.equal({ sent: 0, failed: 1, dropped: 0 });
  });

  it("tries nothing again that was refused", async () => {
    const { queue, batches, counts } = rig(512, async () => "refused");
    queue.onEnd(spans(1)[0] as ReadableSpan);
    await queue.forceFlush();
    expect(batches).to.deep.equal([1]);
    expect(counts.failed).to.equal(1);
  });

  it("gives each request one chance at the end, and takes no span after it", async () => {
    const { queue, batches, counts } = rig(512, async () => "again");
    for (const span of spans(300)) queue.onEnd(span);
    await queue.shutdown();
    expect(batches.length).to.be.within(2, 3);
    for (const span of spans(2)) queue.onEnd(span);
    expect(counts).to.deep.equal({ sent: 0, failed: 300, dropped: 2 });
  });

  it("waits 3 s at the end for a collector that hangs, and drops the rest", async () => {
    const { queue, counts } = rig(512, () => new Promise(() => undefined));
    for (const span of spans(300)) queue.onEnd(span);
    mock.timers.enable({ apis: ["setTimeout"] });
    try {
      let isOver = false;
      const over = queue.shutdown().then(() => {
        isOver = true;
      });
      mock.timers.tick(2_999);
      await nextTurn();
      expect(isOver).to.equal(false);
      mock.timers.tick(1);
      await over;
    } finally {
      mock.timers.reset();
    }
    expect(counts.dropped).to.equal(300 - 256);
  });
});
