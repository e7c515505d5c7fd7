import { createHmac, randomBytes } from "node:crypto";
import { expect } from "chai";
import { Webhook } from "standardwebhooks";
import { filesWith } from "../../support/disk-search.ts";
import { makeNotice, makeWebhook, NotifyWorld, webhookSecret } from "../../support/notify-world.ts";
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

describe("publish(notice)", () => {
  inOwnWorld();

  it("posts the notice, signed so that a Standard Webhooks library takes it", async () => {
    await world.open([makeWebhook(receiver.url)]);
    world.notifier.publish(makeNotice(1, { data: { approval: "apr_1", tool: "write_ﬁle" } }));
    const [delivery] = (await receiver.arrived(1)) as [Delivery];
    expect(delivery.path).to.equal("/hook");
    expect(delivery.headers["content-type"]).to.equal("application/json");
    expect(new Webhook(webhookSecret).verify(delivery.body, { ...delivery.headers })).to.deep.equal({
      type: "approval.pending",
      timestamp: "2026-05-01T10:00:00.000Z",
      data: { approval: "apr_1", tool: "write_ﬁle" },
    });
  });

  it("signs `id.timestamp.body` with the decoded secret, and with each of several", async () => {
    const older = `whsec_${randomBytes(24).toString("base64")}`;
    await world.open([makeWebhook(receiver.url, { secrets: [webhookSecret, older] })]);
    world.publish(1);
    const [{ headers, body }] = (await receiver.arrived(1)) as [Delivery];
    const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
    const byHand = [webhookSecret, older].map((secret) => {
      const key = Buffer.from(secret.slice("whsec_".length), "base64");
      return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
    });
    expect(headers["webhook-signature"]).to.equal(byHand.join(" "));
    expect(headers["webhook-id"]).to.match(/^msg_[0-9a-f-]{36}$/);
    for (const secret of [webhookSecret, older]) new Webhook(secret).verify(body, { ...headers });
  });

  it("is refused by who holds another secret, or was sent another body", async () => {
    await world.open([makeWebhook(receiver.url)]);
    world.publish(1);
    const [{ headers, body }] = (await receiver.arrived(1)) as [Delivery];
    const other = new Webhook(`whsec_${randomBytes(32).toString("base64")}`);
    expect(() => other.verify(body, { ...headers })).to.throw("No matching signature found");
    const forged = body.replace("pending", "approved");
    expect(() => new Webhook(webhookSecret).verify(forged, { ...headers })).to.throw("No matching signature found");
  });

  it("tells each webhook of its tenant, with an id of its own, what it asked for and nothing else", async () => {
    const wanted = (name: string, over: object): ReturnType<typeof makeWebhook> =>
      makeWebhook(`${receiver.url}/${name}`, { name, ...over });
    await world.open([
      wanted("all", {}),
      wanted("some", { events: ["approval.denied"] }),
      wanted("foreign", { tenant: "other" }),
    ]);
    world.publish(1, { type: "approval.pending" });
    world.publish(1, { type: "approval.denied" });
    await receiver.arrived(3);
    await world.became("delivered", 3);
    const got = receiver.deliveries.map(({ path, notice }) => `${path} ${notice.type}`);
    expect(got).to.have.members([
      "/hook/all approval.pending",
      "/hook/all approval.denied",
      "/hook/some approval.denied",
    ]);
    expect(new Set(receiver.ids).size).to.equal(3);
  });

  it("delivers in order", async () => {
    await world.open([makeWebhook(receiver.url)]);
    world.publish(200);
    const numbers = (await receiver.arrived(200)).map(({ notice }) => notice.data.number);
    expect(numbers).to.deep.equal(Array.from({ length: 200 }, (_, number) => number));
  });

  it("leaves nothing behind of what was delivered", async () => {
    await world.open([makeWebhook(receiver.url)]);
    world.publish(20);
    await world.became("delivered", 20);
    await world.notifier.close();
    expect(await world.store.keys({ gte: "acme/", lt: "acme0" }).all()).to.deep.equal([]);
  });

  it("never throws, and says what it could not take", async () => {
    await world.open([makeWebhook(receiver.url)]);
    const cyclic: Record<string, never> = {};
    Object.assign(cyclic, { cyclic });
    world.notifier.publish(makeNotice(1, { data: cyclic }));
    world.notifier.publish(makeNotice(2, { data: { text: "x".repeat(17_000) } }));
    await world.notifier.close();
    world.notifier.publish(makeNotice(3));
    expect(world.warnings.map(({ message }) => message)).to.deep.equal([
      "webhook_notice_failed",
      "webhook_notice_size_exceeded",
      "webhook_notice_published_after_close",
    ]);
    expect(world.results).to.deep.equal(["lost", "lost", "lost"]);
    expect(receiver.deliveries).to.have.length(0);
  });

  it("keeps secret and address out of the store and of what is said", async () => {
    receiver.respond = (response) => answer(response, 500);
    await world.open([makeWebhook(`${receiver.url}?token=canary-4711`, { maxAttempts: 2 })]);
    world.publish(3);
    await world.became("dead", 3);
    await world.close();
    const key = Buffer.from(webhookSecret.slice("whsec_".length), "base64");
    for (const text of [webhookSecret, webhookSecret.slice(6), key.toString("hex"), "canary-4711", "127.0.0.1"]) {
      expect(await filesWith(world.dir, text), text).to.deep.equal([]);
      expect(JSON.stringify(world.warnings)).to.not.include(text);
    }
    expect(JSON.stringify(world.warnings)).to.include("webhook_delivery_abandoned");
  });
});
