import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { makeNotice, makeWebhook, NotifyWorld } from "../../support/notify-world.ts";
import { awaitReady } from "../../support/ready-line.ts";
import { answer, type Delivery, until, WebhookReceiver } from "../../support/webhook-receiver.ts";

const sender = fileURLToPath(new URL("../../fixture/webhook-sender.js", import.meta.url));
const longDelays = { firstMs: 600_000, maxMs: 600_000 };

let world: NotifyWorld;
let receiver: WebhookReceiver;

/** In each suite, because a hook outside of any runs for the tests of every file. */
function inOwnWorld(): void {
  beforeEach(async () => {
    world = await NotifyWorld.create();
    receiver = await WebhookReceiver.start();
  });
  afterEach(async () => {
    await world.remove();
    receiver.stop();
  });
}

function numbersOf(deliveries: readonly Delivery[]): readonly unknown[] {
  return deliveries.map(({ notice }) => notice.data.number);
}

describe("an outbox", () => {
  inOwnWorld();

  it("goes on after a restart: the same ids, in order, and what was in flight again", async () => {
    receiver.respond = (response) => {
      if (receiver.deliveries.length < 3) answer(response, 204);
    };
    await world.open([makeWebhook(receiver.url)]);
    world.publish(10);
    await receiver.arrived(3);
    const cutOff = receiver.ids[2];
    await world.close();
    expect(world.results, "an attempt that a stop cut off is none").to.deep.equal(["delivered", "delivered"]);
    receiver.deliveries.length = 0;
    receiver.respond = (response) => answer(response, 204);
    await world.open([makeWebhook(receiver.url)]);
    expect(numbersOf(await receiver.arrived(8))).to.deep.equal([2, 3, 4, 5, 6, 7, 8, 9]);
    expect(receiver.ids[0]).to.equal(cutOff);
  });

  it("stops at once, though the receiver is slow", async () => {
    receiver.respond = () => undefined;
    await world.open([makeWebhook(receiver.url, { timeoutMs: 600_000 })]);
    world.publish(5);
    await receiver.arrived(1);
    await world.close();
  });

  it("keeps count of attempts, and of the time to wait, across restarts", async () => {
    receiver.respond = (response) => answer(response, 500);
    await world.open([makeWebhook(receiver.url)], { delays: longDelays });
    world.publish(1);
    await world.became("failed", 1);
    await world.close();
    await world.open([makeWebhook(receiver.url)], { delays: longDelays });
    await sleep(100);
    expect(receiver.deliveries, "it is not yet time").to.have.length(1);
    await world.close();
    world.nowMs = () => Date.now() - 86_400_000;
    await world.open([makeWebhook(receiver.url)], { delays: { firstMs: 20, maxMs: 100 } });
    await world.became("dead", 1);
    expect(receiver.deliveries, "a clock set back puts nothing off for longer than the longest wait").to.have.length(3);
  });

  it("loses nothing to kill -9: each notice arrives, always with one id", async () => {
    const slow = (delayMs: number) => (response: Parameters<typeof answer>[0]) =>
      void setTimeout(() => answer(response, 204), delayMs);
    const seen = new Map<unknown, Set<string>>();
    const note = (): void => {
      for (const { notice, id } of receiver.deliveries.splice(0)) {
        seen.set(notice.data.number, (seen.get(notice.data.number) ?? new Set()).add(id));
      }
    };
    receiver.respond = slow(3);
    const child = spawn(process.execPath, [sender, world.dir, receiver.url, "300"], { detached: true });
    const ready = await awaitReady(child, { event: "ready" }, 60_000);
    await receiver.arrived(20);
    await ready.stop("SIGKILL", 5_000);
    expect(receiver.deliveries.length).to.be.below(300);
    note();
    receiver.respond = slow(0);
    await world.open([makeWebhook(receiver.url)]);
    await until(() => {
      note();
      return seen.size === 300;
    }, "every notice");
    expect([...seen.values()].every(({ size }) => size === 1)).to.equal(true);
  });

  it("takes a flood in bounded time and memory: 10,000 wait, the oldest become dead letters, of which 1,000 stay", async () => {
    receiver.respond = () => undefined;
    await world.open([makeWebhook(receiver.url, { timeoutMs: 60_000 })]);
    const cpuMs: number[] = [];
    for (let told = 0; told < 20_000; told += 500) {
      const begun = process.cpuUsage();
      world.publish(500);
      cpuMs.push(process.cpuUsage(begun).user / 1_000);
      await sleep(5);
    }
    expect(world.count("dead")).to.equal(10_000);
    expect(world.count("lost")).to.equal(9_000);
    const letters = await world.letters();
    expect(letters).to.have.length(500);
    expect(letters[0]).to.deep.include({ reason: "overflow", attempts: 0 });
    expect(new Set(world.warnings.map(({ message }) => message))).to.deep.equal(
      new Set(["webhook_delivery_abandoned", "webhook_dead_letter_dropped"]),
    );
    expect(world.warnings, "said once, not ten thousand times").to.have.length(2);
    await world.notifier.close();
    const [waiting, dead] = await Promise.all([
      world.store.keys({ gte: "acme/webhook-outbox/", lt: "acme/webhook-outbox0" }).all(),
      world.store.keys({ gte: "acme/webhook-dead-letter/", lt: "acme/webhook-dead-letter0" }).all(),
    ]);
    expect(waiting).to.have.length(10_000);
    expect(dead).to.have.length(1_000);
    const [first, last] = [cpuMs.slice(0, 10), cpuMs.slice(-10)].map((batches) => Math.min(...batches)) as [
      number,
      number,
    ];
    // The last ones also drop as many; work that grew with what waits would make them 20 to 40 times as dear.
    expect(last / Math.max(first, 1), "500 notices behind 19,500 others, to the first 500").to.be.below(16);
  });

  it("takes ten times as much in a process of 64 MiB", async () => {
    receiver.respond = () => undefined;
    const args = ["--max-old-space-size=64", sender, world.dir, receiver.url, "200000"];
    const ready = await awaitReady(spawn(process.execPath, args, { detached: true }), { event: "ready" }, 100_000);
    await ready.stop("SIGKILL", 5_000);
    receiver.respond = (response) => answer(response, 204);
    await world.open([makeWebhook(receiver.url)]);
    await world.became("delivered", 1_000);
  });

  it("bounds what waits by its size too", async () => {
    receiver.respond = () => undefined;
    await world.open([makeWebhook(receiver.url, { timeoutMs: 60_000 })]);
    for (const count of [550, 550]) {
      world.publish(count, { data: { text: "x".repeat(16_000) } });
      await world.letters(); // what waits for the disk has a bound of its own
    }
    await until(() => world.count("dead") > 0, "an overflow");
    expect(world.count("dead")).to.be.within(50, 60);
  });

  it("waits for a store that is closed under it, and writes what was told meanwhile", async () => {
    receiver.respond = () => undefined;
    await world.open([makeWebhook(receiver.url)]);
    await world.store.close();
    world.publish(5);
    await until(() => world.warnings.length > 0, "a warning");
    expect(world.warnings[0]?.message).to.equal("webhook_outbox_write_failed");
    await world.store.open();
    await until(async () => (await world.store.keys({ gte: "acme/", lt: "acme0" }).all()).length === 5, "5 parcels");
  });

  it("is a dead letter's source where its webhook is gone from the configuration", async () => {
    receiver.respond = () => undefined;
    await world.open([makeWebhook(receiver.url), makeWebhook(receiver.url, { name: "other" })]);
    world.publish(2);
    await receiver.arrived(1);
    await world.close();
    receiver.respond = (response) => answer(response, 204);
    await world.open([makeWebhook(receiver.url, { name: "other" })]);
    await world.became("delivered", 2);
    const letters = await world.letters();
    expect(letters.map(({ webhook, reason }) => `${webhook} ${reason}`)).to.deep.equal(["ops removed", "ops removed"]);
    const id = letters[0]?.id as string;
    expect(await world.notifier.canRedeliver("acme", id), "while it is gone").to.equal(false);
    await world.close();
    await world.open([makeWebhook(receiver.url)]);
    expect(await world.notifier.redeliver("acme", id)).to.equal(true);
    await world.became("delivered", 3);
  });

  it("one tenant's notices reach no webhook of another's", async () => {
    await world.open([
      makeWebhook(receiver.url, { tenant: "a/b" }),
      makeWebhook(receiver.url, { name: "x", tenant: "a" }),
    ]);
    world.notifier.publish(makeNotice(1, { tenant: "a/b" }));
    world.notifier.publish(makeNotice(2, { tenant: "__proto__" }));
    await world.became("delivered", 1);
    expect(numbersOf(receiver.deliveries)).to.deep.equal([1]);
  });
});

describe("dead letters", () => {
  inOwnWorld();

  beforeEach(async () => {
    receiver.respond = (response) => answer(response, 410);
    await world.open([makeWebhook(receiver.url)]);
  });

  it("are listed a page at a time, the latest first, after a restart too", async () => {
    world.publish(5);
    await world.became("dead", 5);
    await world.close();
    await world.open([makeWebhook(receiver.url)]);
    const first = await world.notifier.listDeadLetters("acme", { limit: 3 });
    expect(first.items.map(({ data }) => data.number)).to.deep.equal([4, 3, 2]);
    const second = await world.notifier.listDeadLetters("acme", { limit: 3, cursor: first.next as string });
    expect(second.items.map(({ data }) => data.number)).to.deep.equal([1, 0]);
    expect(second.next).to.equal(null);
    expect(Object.keys(first.items[0] ?? {})).to.deep.equal([
      "id",
      "webhook",
      "type",
      "time",
      "given_up_at",
      "reason",
      "attempts",
      "status",
      "data",
    ]);
  });

  it("are their tenant's only", async () => {
    world.publish(1);
    await world.became("dead", 1);
    const id = (await world.letters())[0]?.id as string;
    expect(await world.letters("other")).to.deep.equal([]);
    expect(await world.notifier.canRedeliver("other", id)).to.equal(false);
    expect(await world.notifier.redeliver("other", id)).to.equal(false);
    expect(await world.letters()).to.have.length(1);
  });

  it("are delivered again when asked: once, with their id, though two ask", async () => {
    world.publish(1);
    await world.became("dead", 1);
    const id = (await world.letters())[0]?.id as string;
    receiver.respond = (response) => answer(response, 204);
    const granted = await Promise.all([world.notifier.redeliver("acme", id), world.notifier.redeliver("acme", id)]);
    expect(granted).to.have.members([true, false]);
    await world.became("delivered", 1);
    expect(receiver.ids).to.deep.equal([id, id]);
    expect(await world.letters()).to.deep.equal([]);
    expect(await world.notifier.redeliver("acme", id)).to.equal(false);
  });

  it("have all their attempts before them again, and a restart in between changes nothing", async () => {
    world.publish(1);
    await world.became("dead", 1);
    receiver.respond = () => undefined;
    expect(await world.notifier.redeliver("acme", (await world.letters())[0]?.id as string)).to.equal(true);
    await receiver.arrived(2);
    await world.close();
    receiver.respond = (response) => answer(response, 500);
    await world.open([makeWebhook(receiver.url)]);
    await world.became("dead", 2);
    expect(await world.letters()).to.have.length(1);
    expect((await world.letters())[0]).to.include({ reason: "exhausted", attempts: 3 });
  });

  it("are refused for a cursor that nobody gave out", async () => {
    for (const cursor of ["x", "-1", "1e3", "../x", "9".repeat(40)]) {
      const error = await world.notifier
        .listDeadLetters("acme", { limit: 1, cursor })
        .catch((thrown: unknown) => thrown);
      expect(error, cursor).to.include({ code: "INVALID_PARAMS" });
    }
  });
});
