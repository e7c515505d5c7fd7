import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { settledGrowth } from "../../support/resident.ts";
import { scrape } from "../../support/scrape.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { send } from "../../support/wire.ts";
import { type Floodable, flood } from "./flood.ts";

/** How many distinct names of each kind are sent; `FLOOD_NAMES=33334` makes the 100,000 of the requirement. */
const names = Number(process.env.FLOOD_NAMES ?? 1_500);
const mebibyte = 1_048_576;
const more = `
log: { level: error }
model_gateway: { max_concurrent: 1000, routes: [{ model: mock, providers: [{ name: mock }] }] }
usage: { requests_per_minute: 1000000, tokens_per_minute: 1000000000 }
`;
/** What counts the decisions about the requests that name what there is. */
const decided: Readonly<Record<Floodable, string>> = {
  tools: 'gateway_decisions_total{protocol="mcp",phase="input",decision="allow"}',
  models: 'gateway_decisions_total{protocol="model",phase="input",decision="allow"}',
};

describe("/metrics", () => {
  let upstream: Recorder;
  let gateway: RunningGateway;

  before(async () => {
    upstream = await startRecorder();
    gateway = await startGateway({
      config: siteConfig({ remoteUrl: upstream.url, more }),
      files: siteFiles(),
      ownProcess: true,
    });
  });

  after(async () => {
    await gateway.stop();
    await upstream.stop();
  });

  it("is served on the admin port to who has a key, and to nobody else [R4.2-2, R1.2-6]", async () => {
    const target = "/metrics";
    expect((await send(gateway.adminUrl, { target })).status).to.equal(401);
    const { status, headers, body } = await send(gateway.adminUrl, { target, headers: [["x-api-key", siteKey]] });
    expect([status, headers.get("content-type")]).to.deep.equal([200, "text/plain; version=0.0.4; charset=utf-8"]);
    expect(body)
      .to.match(/^gateway_requests_total\{/m)
      .and.match(/^gateway_request_duration_seconds_count\{/m);
  });

  it("counts a call on the scrape port [R1.2-9, R4.2-2]", async () => {
    const agent = new Agent(gateway.url, siteKey);
    await agent.call("echo");
    const before = await scrape(gateway.metricsUrl);
    for (let call = 0; call < 3; call++) await agent.call("echo");
    await agent.hangUp();
    const after = await scrape(gateway.metricsUrl);
    const grown = (series: string): number => (after.get(series) ?? 0) - (before.get(series) ?? 0);
    expect(grown('gateway_requests_total{port="gateway",route="mcp.post",status="2xx"}')).to.equal(3);
    expect(grown('gateway_request_duration_seconds_count{port="gateway",route="mcp.post"}')).to.equal(3);
    expect(grown('gateway_request_duration_seconds_sum{port="gateway",route="mcp.post"}')).to.be.above(0);
    expect(grown('gateway_decisions_total{protocol="mcp",phase="input",decision="allow"}')).to.equal(3);
    expect(grown('gateway_outcomes_total{protocol="mcp",status="success"}')).to.equal(3);
  });

  for (const what of ["tools", "models"] as const) {
    it(`has as many series and as much memory after a second flood of distinct ${what} and sessions as after one [S68]`, async () => {
      await flood(gateway.url, siteKey, names, "warm", what);
      await scrape(gateway.metricsUrl); // which is a request with series of its own
      const limit = 128 * mebibyte;
      const memory = await settledGrowth(limit, async (round) => {
        const before = await scrape(gateway.metricsUrl);
        await flood(gateway.url, siteKey, names, `flood-${round}`, what);
        const after = await scrape(gateway.metricsUrl);
        const ours = [...after.keys()].filter((series) => series.startsWith("gateway_"));
        expect(ours.filter((series) => !before.has(series))).to.deep.equal([]);
        expect([...after.keys()].filter((series) => series.includes("flood-"))).to.deep.equal([]);
        const grown = (series: string): number => (after.get(series) ?? 0) - (before.get(series) ?? 0);
        expect(grown(decided[what])).to.equal(names);
        return grown("process_resident_memory_bytes");
      });
      expect(memory).to.be.below(limit);
    });
  }
});
