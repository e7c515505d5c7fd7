import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { type Script, scripts } from "../../fixture/model-provider.ts";
import { answerEvents } from "../../fixture/model-reply.ts";
import { until } from "../../support/event-stream.ts";
import { residentBytes } from "../../support/resident.ts";
import { dial, encodeRequest } from "../../support/wire.ts";
import { askModel } from "./ask.ts";
import { type ModelWorld, openModelWorld } from "./world.ts";

const mebibyte = 1_048_576;
const kilobyte = 1_000;
const chunks = 10_000;
const unreadMs = 3_000;
const clients = 10;

const events = answerEvents("chat", { text: "hello" });
/** An event of 10 kB that says little: JSON may hold any number of blanks. */
const chunk = (events.find((each) => each.includes("hello")) as string).replace(
  '"choices"',
  `${" ".repeat(10 * kilobyte)}"choices"`,
);
const whole = [events[0] as string, ...Array<string>(chunks).fill(chunk), ...events.slice(2)];

describe("a client of a model that reads slowly", () => {
  let world: ModelWorld;
  let usual: number;
  before(async () => {
    world = await openModelWorld({ more: `limits: { unread_ms: ${unreadMs} }` });
    world.provider.next(scripts.streams(whole));
    await askModel(world, { stream: true });
    usual = await residentBytes(world.gateway);
  });
  after(() => world.stop());

  /** Asks for a stream and reads nothing of it. */
  async function ask(): Promise<Socket> {
    const socket = await dial(world.gateway.url);
    socket.pause();
    socket.on("error", () => undefined);
    const body = JSON.stringify({
      model: "chat-model",
      stream: true,
      messages: [{ role: "user", content: "hello" }],
    });
    const headers = [
      ["x-api-key", world.keys.agent],
      ["content-type", "application/json"],
    ] as const;
    socket.write(encodeRequest(world.gateway.url, { method: "POST", target: "/v1/chat/completions", headers, body }));
    return socket;
  }

  it("gets 10,000 chunks of 10 kB whole, and no memory grows with them", async () => {
    world.provider.next(scripts.streams(whole));
    const socket = await ask();
    let [bytes, tail, largest] = [0, "", 0];
    socket.on("data", (data: Buffer) => {
      bytes += data.length;
      tail = (tail + data.toString("latin1")).slice(-40);
      // Never as fast as it could.
      socket.pause();
      setTimeout(() => socket.resume(), 1);
    });
    socket.resume();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    let over = false;
    void closed.then(() => {
      over = true;
    });
    while (!over) {
      largest = Math.max(largest, (await residentBytes(world.gateway)) - usual);
      await sleep(50);
    }
    expect(tail).to.include("data: [DONE]\n\n");
    expect(bytes).to.be.above(chunks * 10 * kilobyte);
    process.stdout.write(`    grew by ${Math.round(largest / mebibyte)} MiB at most\n`);
    expect(largest).to.be.below(64 * mebibyte);
  });

  it("keeps the provider waiting where it reads nothing, and is cut off in time", async () => {
    const sent = { count: 0 };
    const calls = world.provider.calls.length;
    world.provider.next(...Array<Script>(clients).fill(scripts.floods(chunk, sent)));
    const sockets = await Promise.all(Array.from({ length: clients }, ask));
    // The system's own buffers are full on both ways: nothing moves any more.
    const held = await until(async () => {
      const count = sent.count;
      await sleep(unreadMs / 10);
      return count > 0 && sent.count === count && count;
    });
    expect(held * 10 * kilobyte).to.be.below(clients * 16 * mebibyte);
    expect(world.provider.calls.slice(calls).some(({ isOver }) => isOver)).to.equal(false);
    let largest = (await residentBytes(world.gateway)) - usual;
    await until(
      () =>
        world.provider.calls.length === calls + clients &&
        world.provider.calls.slice(calls).every(({ isOver }) => isOver),
      4 * unreadMs,
    );
    largest = Math.max(largest, (await residentBytes(world.gateway)) - usual);
    process.stdout.write(
      `    ${clients} clients: ${Math.round((sent.count * 10) / 1_000)} MB sent, grew by ${Math.round(largest / mebibyte)} MiB\n`,
    );
    expect(largest).to.be.below(128 * mebibyte);
    // The provider is cut off before the outcome is on the disk.
    const outcomes = await until(async () => {
      const latest = (await world.records()).slice(-clients);
      return latest.every(({ effect }) => effect !== "dispatched") && latest;
    });
    expect(outcomes.map(({ effect, reason }) => [effect, reason])).to.deep.equal(
      outcomes.map(() => ["unknown", "CANCELLED"]),
    );
    for (const socket of sockets) socket.destroy();
  });
});
