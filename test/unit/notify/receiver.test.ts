import { execFileSync, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { makeWebhook, NotifyWorld } from "../../support/notify-world.ts";
import { awaitReady } from "../../support/ready-line.ts";
import { until, WebhookReceiver } from "../../support/webhook-receiver.ts";

const sender = fileURLToPath(new URL("../../fixture/webhook-sender.js", import.meta.url));

describe("a receiver behind TLS", () => {
  let world: NotifyWorld;
  let receiver: WebhookReceiver;
  let certificate: string;

  beforeEach(async () => {
    world = await NotifyWorld.create();
    certificate = join(world.dir, "cert.pem");
    const key = join(world.dir, "key.pem");
    const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=receiver";
    const args = [...request.split(" "), "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate];
    execFileSync("openssl", args, { stdio: "ignore" });
    receiver = await WebhookReceiver.start(0, {
      key: await readFile(key, "utf8"),
      cert: await readFile(certificate, "utf8"),
    });
  });

  afterEach(async () => {
    await world.remove();
    receiver.stop();
  });

  it("is told nothing while nobody vouches for its certificate", async () => {
    await world.open([makeWebhook(receiver.url, { maxAttempts: 2 })]);
    world.publish(1);
    await world.became("dead", 1);
    expect(world.warnings[0]?.fields).to.include({ fault: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    expect(receiver.deliveries).to.deep.equal([]);
  });

  it("is told by a process that trusts it", async () => {
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: certificate };
    const child = spawn(process.execPath, [sender, join(world.dir, "data"), receiver.url, "3"], {
      env,
      detached: true,
    });
    const ready = await awaitReady(child, { event: "ready" }, 60_000);
    await until(() => receiver.deliveries.length === 3, "3 deliveries");
    await ready.stop("SIGKILL", 5_000);
    expect(receiver.deliveries.map(({ notice }) => notice.data.number)).to.deep.equal([0, 1, 2]);
  });
});
