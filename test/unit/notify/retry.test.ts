import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Webhook } from "standardwebhooks";
import { makeWebhook, NotifyWorld, webhookSecret } from "../../support/notify-world.ts";
import { answer, type Delivery, WebhookReceiver } from "../../support/webhook-receiver.ts";

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

/** Answers the first `count` requests with `status`, then 204. */
function failFirst(count: number, status: number, headers: Readonly<Record<string, string>> = {}): void {
  receiver.respond = (response) => {
    if (receiver.deliveries.length <= count) answer(response, status, headers);
    else answer(response, 204);
  };
}

describe("a delivery that fails", () => {
  inOwnWorld();

  for (const status of [408, 425, 429, 500, 503, 302, 304]) {
    it(`comes again after ${status}, with the same id and body and a signature of its own time`, async () => {
      failFirst(1, status);
      await world.open([makeWebhook(receiver.url)]);
      world.nowMs = () => Date.now() + receiver.deliveries.length * 60_000;
      world.publish(1);
      const [first, second] = (await receiver.arrived(2)) as [Delivery, Delivery];
      await world.became("delivered", 1);
      expect(second.id).to.equal(first.id);
      expect(second.body).to.equal(first.body);
      const times = [first, second].map(({ headers }) => Number(headers["webhook-timestamp"]));
      expect((times[1] as number) - (times[0] as number)).to.be.within(59, 61);
      new Webhook(webhookSecret).verify(second.body, { ...second.headers });
      expect(world.results).to.deep.equal(["failed", "delivered"]);
    });
  }

  it("follows no redirect: the target hears nothing", async () => {
    const target = await WebhookReceiver.start();
    receiver.respond = (response) => answer(response, 307, { location: target.url });
    await world.open([makeWebhook(receiver.url, { maxAttempts: 2 })]);
    world.publish(1);
    await world.became("dead", 1);
    expect(receiver.deliveries).to.have.length(2);
    expect(target.deliveries).to.have.length(0);
    target.stop();
    expect((await world.letters())[0]).to.include({ reason: "exhausted", status: 307 });
  });

  for (const status of [400, 401, 404, 410, 422]) {
    it(`is a dead letter at once after ${status}`, async () => {
      receiver.respond = (response) => answer(response, status);
      await world.open([makeWebhook(receiver.url)]);
      world.publish(1);
      await world.became("dead", 1);
      expect(await world.letters()).to.have.length(1);
      expect((await world.letters())[0]).to.deep.include({
        reason: "refused",
        status,
        attempts: 1,
        data: { number: 0 },
      });
      await sleep(150);
      expect(receiver.deliveries).to.have.length(1);
    });
  }

  it("does not hold up those behind it, and waits for as long as the receiver asks", async () => {
    receiver.respond = (response, { notice }) =>
      notice.data.number === 0 && receiver.deliveries.length === 1
        ? answer(response, 429, { "retry-after": "1" })
        : answer(response, 204);
    await world.open([makeWebhook(receiver.url)], { delays: { firstMs: 10, maxMs: 5_000 } });
    world.publish(3);
    const deliveries = await receiver.arrived(4);
    expect(deliveries.map(({ notice }) => notice.data.number)).to.deep.equal([0, 1, 2, 0]);
    expect((deliveries[3] as Delivery).atMs - (deliveries[0] as Delivery).atMs).to.be.at.least(990);
  });

  it("is not put off beyond the longest time between attempts, whatever the receiver asks", async () => {
    failFirst(1, 503, { "retry-after": "86400" });
    await world.open([makeWebhook(receiver.url)]);
    world.publish(1);
    await world.became("delivered", 1);
  });

  it("comes again though the clock was set back an hour, or stands still", async () => {
    failFirst(2, 500);
    await world.open([makeWebhook(receiver.url)]);
    const start = Date.now();
    world.nowMs = () => (receiver.deliveries.length === 0 ? start : start - 3_600_000);
    world.publish(1);
    await world.became("delivered", 1);
    expect(receiver.deliveries).to.have.length(3);
  });

  it("comes again where the connection is refused, and where it is reset", async () => {
    const { port } = receiver;
    receiver.stop();
    await world.open([makeWebhook(`http://127.0.0.1:${port}/hook`, { maxAttempts: 50 })]);
    world.publish(1);
    await world.became("failed", 2);
    receiver = await WebhookReceiver.start(port);
    let resets = 0;
    receiver.respond = (response) => (resets++ < 2 ? response.destroy() : answer(response, 204));
    await world.became("delivered", 1);
    expect(resets).to.equal(3);
    expect(world.warnings[0]).to.deep.include({ message: "webhook_delivery_failed" });
    expect(world.warnings[0]?.fields).to.include({ webhook: "ops", fault: "ECONNREFUSED" });
  });

  it("says of each webhook that it fails, and once only", async () => {
    receiver.respond = (response) => answer(response, 500);
    await world.open([makeWebhook(receiver.url), makeWebhook(receiver.url, { name: "other" })]);
    world.publish(5);
    await world.became("dead", 10);
    const said = world.warnings.map(({ message, fields }) => `${message}: ${(fields as { webhook: string }).webhook}`);
    expect(said).to.have.members([
      "webhook_delivery_failed: ops",
      "webhook_delivery_failed: other",
      "webhook_delivery_abandoned: ops",
      "webhook_delivery_abandoned: other",
    ]);
  });
});

describe("a receiver that does not behave", () => {
  inOwnWorld();

  it("that never answers is given its time for each attempt, few at once, and then up", async () => {
    receiver.respond = () => undefined;
    await world.open([makeWebhook(receiver.url, { timeoutMs: 60, maxAttempts: 2 })]);
    world.publish(12);
    await world.became("dead", 12);
    expect(receiver.maxOpen).to.be.within(2, 5);
    expect(receiver.deliveries).to.have.length(24);
    expect((await world.letters())[0]).to.include({ status: null, reason: "exhausted", attempts: 2 });
  });

  it("that sends headers without end is given its time, and no more", async () => {
    receiver.respond = ({ socket }) => {
      socket?.write("HTTP/1.1 200 OK\r\n");
      const timer = setInterval(() => socket?.write("x: y\r\n"), 5);
      socket?.once("close", () => clearInterval(timer));
      socket?.on("error", () => undefined);
    };
    await world.open([makeWebhook(receiver.url, { timeoutMs: 150, maxAttempts: 1 })]);
    world.publish(1);
    await world.became("dead", 1);
  });

  it("that answers without end is told, and hung up on", async () => {
    let sent = 0;
    const ended: Promise<unknown>[] = [];
    receiver.respond = (response) => {
      response.writeHead(200);
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536))) sent += 65_536;
      };
      response.on("drain", more).on("error", () => undefined);
      ended.push(once(response, "close"));
      more();
    };
    await world.open([makeWebhook(receiver.url)]);
    world.publish(3);
    await world.became("delivered", 3);
    await Promise.all(ended);
    expect(ended).to.have.length(3);
    expect(sent, "what fits into sockets").to.be.below(30_000_000);
    expect(world.results).to.deep.equal(["delivered", "delivered", "delivered"]);
  });

  it("that drips its answer holds nobody longer than its time", async () => {
    receiver.respond = (response) => {
      response.writeHead(200).write("a");
      const timer = setInterval(() => response.write("a"), 10);
      response.once("close", () => clearInterval(timer));
    };
    await world.open([makeWebhook(receiver.url, { timeoutMs: 100 })]);
    world.publish(2);
    await world.became("delivered", 2);
  });

  it("that speaks no HTTP is tried again", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    server.removeAllListeners("connection").on("connection", (socket: Socket) => {
      socket.on("error", () => undefined).end("220 smtp ready\r\n");
    });
    await once(server, "listening");
    await world.open([makeWebhook(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { maxAttempts: 2 })]);
    world.publish(1);
    await world.became("dead", 1);
    expect(world.results).to.deep.equal(["failed", "dead"]);
    server.close();
  });
});
