import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { scripts } from "../../fixture/model-provider.ts";
import { Agent } from "../../support/agent.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { startRecorder } from "../../support/recorder.ts";
import { type Scrape, scrape } from "../../support/scrape.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { askModel } from "../model/ask.ts";
import { openModelWorld } from "../model/world.ts";
import { holdCall, keys, openWorld } from "../wire/world.ts";

/** The values of a gauge by its one label. */
function byLabel(scraped: Scrape, name: string): Readonly<Record<string, number>> {
  const series = [...scraped].flatMap(([key, value]) => {
    const [, label = ""] = new RegExp(`^${name}\\{\\w+="(\\w+)"\\}$`).exec(key) ?? [];
    return label === "" ? [] : [[label, value] as const];
  });
  return Object.fromEntries(series);
}

describe("/metrics, of how a gateway stands", () => {
  let gateway: RunningGateway | undefined;

  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });

  it("counts every record of the evidence, and the writes they shared", async () => {
    const upstream = await startRecorder();
    gateway = await startGateway({ config: siteConfig({ remoteUrl: upstream.url }), files: siteFiles() });
    const agent = new Agent(gateway.url, siteKey);
    await Promise.all(Array.from({ length: 20 }, () => agent.call("echo")));
    await agent.hangUp();
    const { records } = await new EvidenceReader(gateway.adminUrl, siteKey).verify();
    const now = await scrape(gateway.metricsUrl);
    const verified = records + 1; // that it was verified is a record too
    expect(now.get("gateway_evidence_records")).to.equal(verified);
    expect(now.get("gateway_evidence_longest_chain_records")).to.equal(verified);
    expect(now.get("gateway_evidence_append_duration_seconds_count")).to.equal(verified);
    expect(now.get("gateway_evidence_append_duration_seconds_sum")).to.be.above(0);
    expect(now.get("gateway_evidence_batch_records_sum")).to.equal(verified);
    expect(now.get("gateway_evidence_batch_records_count")).to.be.within(1, verified - 1);
    expect(now.get("gateway_evidence_writable")).to.equal(1);
    expect(byLabel(now, "gateway_evidence_chains")).to.deep.equal({ ready: 1, failed: 0, refused: 0 });
    expect(now.get('gateway_dispatch_duration_seconds_count{protocol="mcp"}')).to.equal(20);
    await upstream.stop();
  });

  it("says which upstreams are up, and which are not any more", async () => {
    const upstream = await startRecorder();
    gateway = await startGateway({ config: siteConfig({ remoteUrl: upstream.url }), files: siteFiles() });
    const upstreams = async (): Promise<Readonly<Record<string, number>>> =>
      byLabel(await scrape((gateway as RunningGateway).metricsUrl), "gateway_upstreams");
    // It starts with the gateway.
    while ((await upstreams()).up !== 1) await sleep(20);
    expect(await upstreams()).to.deep.equal({ idle: 0, starting: 0, up: 1, down: 0 });
    await upstream.stop();
    await gateway.stop();
    gateway = await startGateway({ config: siteConfig({ remoteUrl: upstream.url }), files: siteFiles() });
    const agent = new Agent(gateway.url, siteKey);
    await agent.call("echo");
    await agent.hangUp();
    expect(await upstreams()).to.deep.equal({ idle: 0, starting: 0, up: 0, down: 1 });
    const other = await startRecorder();
    await gateway.stop();
    gateway = await startGateway({ config: siteConfig({ remoteUrl: other.url }), files: siteFiles() });
    await new Agent(gateway.url, siteKey).call("echo");
    expect(await upstreams()).to.deep.equal({ idle: 0, starting: 0, up: 1, down: 0 });
    await other.stop();
  });

  it("counts the approvals that wait, and how full the room for them is", async () => {
    const world = await openWorld("approvals: { max_pending: 4 }");
    const { metricsUrl, adminUrl } = world.gateway;
    const [first] = [await holdCall(world), await holdCall(world, "viewer")];
    expect(byLabel(await scrape(metricsUrl), "gateway_live_approvals")).to.deep.equal({ pending: 2, approved: 0 });
    const response = await fetch(`${adminUrl}/admin/v1/approvals/${first}/approve`, {
      method: "POST",
      headers: { "x-api-key": keys.admin, "content-type": "application/json" },
      body: "{}",
    });
    expect(response.status).to.equal(200);
    const now = await scrape(metricsUrl);
    expect(byLabel(now, "gateway_live_approvals")).to.deep.equal({ pending: 1, approved: 1 });
    expect(now.get("gateway_approval_room_ratio")).to.equal(0.5);
    await world.stop();
  });

  it("says which providers rest", async () => {
    const world = await openModelWorld({ provider: "max_retries: 0\n    breaker: { failures: 2, rest_ms: 60000 }" });
    const providers = async (): Promise<unknown> =>
      byLabel(await scrape(world.gateway.metricsUrl), "gateway_providers");
    expect(await providers()).to.deep.equal({ closed: 4, open: 0, half_open: 0 });
    world.provider.script = scripts.says(500);
    await askModel(world);
    await askModel(world);
    expect(await providers()).to.deep.equal({ closed: 3, open: 1, half_open: 0 });
    const dispatched = (await scrape(world.gateway.metricsUrl)).get(
      'gateway_dispatch_duration_seconds_count{protocol="model"}',
    );
    expect(dispatched).to.equal(2);
    await world.stop();
  });

  it("says how much room the disk has, where state is on a disk", async () => {
    gateway = await startGateway({ config: siteConfig({}), files: siteFiles() });
    const onDisk = await scrape(gateway.metricsUrl);
    const free = onDisk.get("gateway_data_free_bytes") ?? 0;
    expect(free).to.be.above(0);
    expect(onDisk.get("gateway_data_capacity_bytes")).to.be.above(free);
    await gateway.stop();
    gateway = await startGateway({ config: siteConfig({ more: "state: { enabled: false }" }), files: siteFiles() });
    const inMemory = [...(await scrape(gateway.metricsUrl)).keys()];
    expect(inMemory.filter((series) => series.startsWith("gateway_data_"))).to.deep.equal([]);
    expect(inMemory).to.include("gateway_evidence_writable");
  });
});
