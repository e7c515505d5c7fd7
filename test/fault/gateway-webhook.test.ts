import { mkdtemp, rm } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Agent } from "../support/agent.ts";
import { DiskFault } from "../support/disk-fault.ts";
import { EvidenceReader } from "../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { makeWebhook, NotifyWorld, webhookSecret } from "../support/notify-world.ts";
import { type Recorder, startRecorder } from "../support/recorder.ts";
import { siteConfig, siteFiles, siteKey } from "../support/site.ts";
import { answer, until, WebhookReceiver } from "../support/webhook-receiver.ts";

describe("a gateway whose disk fails when it notes a delivery", () => {
  let folder: string;
  let disk: DiskFault;
  let upstream: Recorder;
  let receiver: WebhookReceiver;
  let gateway: RunningGateway;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-webhook-disk-"));
    disk = await DiskFault.compile(folder);
    upstream = await startRecorder();
    receiver = await WebhookReceiver.start();
  });

  afterEach(async () => {
    await gateway.stop();
    await upstream.stop();
    receiver.stop();
    await rm(folder, { recursive: true });
  });

  function start(): Promise<RunningGateway> {
    const more = `approvals: { webhooks: [{ name: ops, tenant: acme, url: "${receiver.url}", secrets_env: [SECRET] }] }`;
    const config = siteConfig({ remoteUrl: upstream.url, more });
    return startGateway({ config, files: siteFiles(), folder, env: { SECRET: webhookSecret, ...disk.env } });
  }

  async function leaveNotice(): Promise<void> {
    const world = NotifyWorld.at(join(folder, "data"));
    await world.open([makeWebhook(receiver.url)]);
    world.publish(1);
    await receiver.arrived(1);
    await world.close();
  }

  function callUntilServed(agent: Agent): Promise<void> {
    return until(async () => (await agent.call("echo", {})).status === 200, "an answer");
  }

  for (const [what, call, errno] of [
    ["is full", "write", constants.errno.ENOSPC],
    ["cannot be synced", "sync", constants.errno.EIO],
  ] as const) {
    it(`that ${what}: no evidence is lost, the next call mends the store, and what was delivered stays so`, async () => {
      const held: ServerResponse[] = [];
      receiver.respond = (response) => void held.push(response);
      gateway = await start();
      await gateway.stop();
      await leaveNotice();
      gateway = await start();
      await receiver.arrived(2);
      const agent = new Agent(gateway.url, siteKey);
      await callUntilServed(agent);
      await disk.begin(call, errno, "/state/");
      answer(held.at(-1) as ServerResponse, 204);
      await until(() => gateway.stderr().includes("webhook_outbox_write_failed"), "a warning");
      await disk.end();
      await callUntilServed(agent);
      await agent.hangUp();
      const reader = new EvidenceReader(gateway.adminUrl, siteKey);
      expect(await reader.verify()).to.include({ ok: true });
      const served = (await reader.recordsOf()).filter(({ effect }) => effect === "success");
      expect(served).to.have.length((await upstream.calls()).length);
      await gateway.stop();
      gateway = await start();
      const again = new Agent(gateway.url, siteKey);
      await callUntilServed(again);
      await again.hangUp();
      expect(receiver.deliveries, "it is not told again").to.have.length(2);
    });
  }
});
