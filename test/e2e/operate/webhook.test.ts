import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Webhook } from "standardwebhooks";
import { accessRoutes } from "../../../core/admin/console/access/route.ts";
import { recordRange } from "../../../core/evidence/record/key-space.ts";
import { Agent } from "../../support/agent.ts";
import { filesWith } from "../../support/disk-search.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { makeWebhook, NotifyWorld, webhookSecret } from "../../support/notify-world.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { routes } from "../../support/route-table.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { answer, type Delivery, until, WebhookReceiver } from "../../support/webhook-receiver.ts";
import { type HeaderList, send } from "../../support/wire.ts";
import { runGateway } from "../../unit/cli/run.ts";

const reviewRule = `rules:
  - id: open.review
    title: Echoes are reviewed
    decision: review
    severity: high
    risk: 50
    match: { phase: input, tool: echo }
    message: somebody has to look at it
`;

describe("a gateway with a webhook", () => {
  let folder: string;
  let upstream: Recorder;
  let receiver: WebhookReceiver;
  let gateway: RunningGateway;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-webhook-"));
    upstream = await startRecorder();
    receiver = await WebhookReceiver.start();
    gateway = await start();
    await gateway.stop();
    await leaveNotice();
    gateway = await start();
  });

  afterEach(async () => {
    await gateway.stop();
    await upstream.stop();
    receiver.stop();
    await rm(folder, { recursive: true });
  });

  function start(): Promise<RunningGateway> {
    const more = `approvals: { webhooks: [{ name: ops, tenant: acme, url: "${receiver.url}", secrets_env: [SECRET] }] }`;
    const config = siteConfig({ remoteUrl: upstream.url, role: "admin", more });
    return startGateway({
      alone: true,
      config,
      files: { ...siteFiles(), "packs/open/rules/review.yaml": reviewRule },
      folder,
      env: { SECRET: webhookSecret },
    });
  }

  /** What a gateway that was stopped before it could deliver it leaves in its state. */
  async function leaveNotice(): Promise<void> {
    const { respond } = receiver;
    receiver.respond = () => undefined;
    const world = NotifyWorld.at(join(folder, "data"));
    await world.open([makeWebhook(receiver.url)]);
    world.publish(1, { data: { id: "apr_1", fingerprint: "f" } });
    await receiver.arrived(1);
    await world.close();
    receiver.deliveries.length = 0;
    receiver.respond = respond;
  }

  async function metrics(): Promise<string> {
    return (await send(gateway.metricsUrl, { target: "/metrics" })).body;
  }

  /** The chain's latest checkpoint: it moves with every record. */
  async function checkpoint(): Promise<string> {
    const headers: HeaderList = [["x-api-key", siteKey]];
    return (await send(gateway.adminUrl, { target: "/admin/v1/evidence/checkpoint", headers })).body;
  }

  function cli(...args: readonly string[]): ReturnType<typeof runGateway> {
    return runGateway(["webhooks", ...args], { GATEWAY_API_KEY: siteKey, GATEWAY_ADMIN_URL: gateway.adminUrl });
  }

  it("delivers what its predecessor left, and tells its secret and the address to nobody else [S66]", async () => {
    const [{ body, headers }] = (await receiver.arrived(1)) as [Delivery];
    expect(new Webhook(webhookSecret).verify(body, { ...headers })).to.deep.include({ type: "approval.pending" });
    await until(async () => /deliveries_total\{result="delivered"\} 1/.test(await metrics()), "a count");
    const text = await metrics();
    await gateway.stop();
    const said = gateway.stdout() + gateway.stderr() + text;
    for (const secret of [webhookSecret, webhookSecret.slice("whsec_".length)]) {
      expect(await filesWith(join(folder, "data"), secret)).to.deep.equal([]);
      expect(said).to.not.include(secret);
    }
    expect(said).to.not.include(`${receiver.port}/hook`);
    gateway = await start();
    expect(receiver.deliveries, "what was delivered is not delivered again").to.have.length(1);
  });

  it("tells of a held action, without its arguments, and takes no authority from what it told", async () => {
    const agent = new Agent(gateway.url, siteKey);
    const args = { path: "canary-argument" };
    await agent.call("echo", args);
    const { body, headers, notice } = (await receiver.arrived(2))[1] as Delivery;
    expect(notice).to.deep.include({ type: "approval.pending" });
    expect(notice.data).to.include({ tool: "echo", state: "pending" });
    expect(notice.data.id).to.match(/^apr_/);
    expect(body).to.not.include("canary-argument");
    await until(async () => (await metrics()).includes('deliveries_total{result="delivered"} 2'), "a count");
    const before = await checkpoint();
    const kept = Object.entries(headers).filter(([name]) => /^(?:webhook-|content-type|user-agent)/.test(name));
    const signature = String(headers["webhook-signature"]).slice("v1,".length);
    const disguises: readonly HeaderList[] = [
      [],
      [["authorization", `Bearer ${signature}`]],
      [["x-api-key", webhookSecret]],
    ];
    const ports = { gateway: gateway.url, admin: gateway.adminUrl, metrics: gateway.metricsUrl };
    for (const [id, { port, path, method, access }] of Object.entries(routes)) {
      for (const verb of new Set([method, "POST"])) {
        for (const more of disguises) {
          const target = path.replace(":id", String(notice.data.id));
          const answer = await send(ports[port], { method: verb, target, headers: [...kept, ...more], body });
          const served = access === "public" && verb === method && !(id in accessRoutes);
          const expected = served ? [path === "/v1/ws" ? 426 : 200] : [401, 404, 405];
          // Who comes without a key is told how to sign in.
          const isNotice = id === "console.session" && verb === method && answer.body.includes('"authenticated":false');
          expect(answer.status, `${verb} ${id}`).to.be.oneOf(isNotice ? [200] : expected);
        }
      }
    }
    expect(await checkpoint(), "no record was added").to.equal(before);
    expect(receiver.deliveries).to.have.length(2);
    await agent.call("echo", args);
    await agent.hangUp();
    expect(await upstream.calls(), "it is held as before").to.deep.equal([]);
  });

  it("keeps what is refused, lists it, and delivers it again for an admin, on record", async () => {
    await receiver.arrived(1);
    await gateway.stop();
    receiver.respond = (response) => answer(response, 410);
    await leaveNotice();
    gateway = await start();
    receiver.respond = (response) => answer(response, 410);
    await until(async () => (await cli("dead-letters")).stdout !== "", "a dead letter");
    const id = receiver.ids[0] as string;
    const listed = await cli("dead-letters");
    expect(listed.stdout).to.match(
      new RegExp(`^message .*\\n${id}  \\S+Z  ops      approval.pending  refused         1  status 410\\n$`),
    );
    const [letter] = (await cli("dead-letters", "--json")).stdout.split("\n").map((line) => JSON.parse(line || "{}"));
    expect(letter).to.deep.include({ id, webhook: "ops", data: { id: "apr_1", fingerprint: "f" } });
    receiver.respond = (response) => answer(response, 204);
    expect(await cli("redeliver", id)).to.deep.equal({
      code: 0,
      stdout: "",
      stderr: `gateway: queued ${id} for redelivery\n`,
    });
    await receiver.arrived(2);
    expect(receiver.ids).to.deep.equal([id, id]);
    const again = await cli("redeliver", id);
    expect(again.code).to.equal(1);
    expect(again.stderr).to.include("no such dead letter");
    await gateway.stop();
    const world = NotifyWorld.at(join(folder, "data"));
    await world.open([]);
    const records = await world.store.values(recordRange("acme")).all();
    await world.close();
    const asked = records.map((text) => JSON.parse(text)).filter(({ kind }) => kind === "admin");
    expect(asked.map(({ detail }) => detail.action)).to.deep.equal(["webhook.redeliver", "refused"]);
    expect(asked[0].detail).to.include({ action: "webhook.redeliver", webhook_id: id });
    gateway = await start();
  });
});
