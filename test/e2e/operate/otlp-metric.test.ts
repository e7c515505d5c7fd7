import { expect } from "chai";
import { readProtobufMetrics, seriesOf, type ToldMetric } from "../../support/otlp-metric-reader.ts";
import { scrape } from "../../support/scrape.ts";
import { TracedWorld } from "../../support/traced-world.ts";

/** What stands still while nobody calls. */
const still = [
  "gateway_decisions_total",
  "gateway_outcomes_total",
  "gateway_dispatch_duration_seconds",
  "gateway_policy_duration_seconds",
  "gateway_model_tokens_total",
  "gateway_approvals_total",
  "gateway_evidence_records",
];

/** A metric in OTLP's JSON. */
interface JsonMetric {
  readonly name: string;
  readonly sum?: { readonly isMonotonic: boolean; readonly aggregationTemporality: number };
}

describe("the metrics that a collector is told in JSON", () => {
  it("are cumulative sums and the rest, by the same names", async () => {
    const world = await TracedWorld.open({ metricsIntervalMs: 1_000, telemetry: "protocol: http/json" });
    try {
      const { collector } = world;
      const report = await collector.await(() => collector.requests.find(({ path }) => path === "/v1/metrics"));
      const { resourceMetrics } = JSON.parse(report.body.toString("utf8"));
      const metrics: readonly JsonMetric[] = resourceMetrics[0].scopeMetrics[0].metrics;
      const decisions = metrics.find(({ name }) => name === "gateway_decisions_total");
      expect(decisions?.sum).to.include({ isMonotonic: true, aggregationTemporality: 2 });
      expect(report.headers["content-type"]).to.equal("application/json");
    } finally {
      await world.stop();
    }
  });
});

describe("the metrics that a collector is told", () => {
  let world: TracedWorld;
  let told: ReadonlyMap<string, ToldMetric>;

  before(async () => {
    world = await TracedWorld.open({ metricsIntervalMs: 1_000 });
    const agent = await world.connect("v2 modern");
    await agent.callTool("echo", {});
    await agent.callTool("echo", { refuse: true });
    await agent.callTool("echo", { hold: true });
    for (const stream of [true, false]) {
      const answer = await fetch(`${world.gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": world.keys.agent, "content-type": "application/json" },
        body: JSON.stringify({ model: "chat-model", stream, messages: [{ role: "user", content: "hello" }] }),
      });
      await answer.text();
    }
    told = await nextReport();
  });
  after(() => world.stop());

  /** What is told in the second report from now on: the first may have begun before. */
  async function nextReport(): Promise<ReadonlyMap<string, ToldMetric>> {
    const reports = () => world.collector.requests.filter(({ path }) => path === "/v1/metrics");
    const before = reports().length;
    const body = await world.collector.await(() => reports()[before + 1]?.body);
    return new Map(readProtobufMetrics(body).map((metric) => [metric.name, metric]));
  }

  it("are those of `/metrics`, series by series", async () => {
    const scraped = await scrape(world.gateway.metricsUrl);
    for (const name of still) {
      const metric = told.get(name);
      if (metric === undefined) return expect.fail(`expected ${name} among ${[...told.keys()].join(", ")}`);
      const expected = [...scraped].filter(([series]) =>
        new RegExp(`^${name}(_bucket|_sum|_count)?(\\{|$)`).test(series),
      );
      expect(new Map(seriesOf(metric)), name).to.deep.equal(new Map(expected));
      expect(expected, name).to.have.length.above(0);
    }
  });

  it("are all of them, with their kind and unit", async () => {
    const text = await (await fetch(`${world.gateway.metricsUrl}/metrics`)).text();
    const kinds = { counter: "sum", gauge: "gauge", histogram: "histogram" } as const;
    const declared = [...text.matchAll(/^# TYPE (\S+) (counter|gauge|histogram)$/gm)];
    expect(declared.length).to.be.above(40);
    for (const [, name = "", type = ""] of declared) {
      expect(told.get(name)?.kind, name).to.equal(kinds[type as keyof typeof kinds]);
    }
    expect(told.get("gateway_dispatch_duration_seconds")?.unit).to.equal("s");
    expect(told.get("process_resident_memory_bytes")?.unit).to.equal("By");
    expect(told.get("gateway_approval_room_ratio")?.unit).to.equal("1");
    expect(told.get("gateway_decisions_total")?.unit).to.equal("");
  });

  it("have what the conventions for models ask for besides", async () => {
    const asked = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "open-1",
    };
    const duration = told.get("gen_ai.client.operation.duration");
    expect(duration).to.include({ unit: "s", kind: "histogram" });
    expect(duration?.points.map(({ attributes, value }) => ({ attributes, value }))).to.deep.equal([
      { attributes: asked, value: 2 },
    ]);
    expect(duration?.points[0]?.bounds.slice(0, 3)).to.deep.equal([0.01, 0.02, 0.04]);
    const usage = told.get("gen_ai.client.token.usage");
    expect(usage).to.include({ unit: "{token}", kind: "histogram" });
    const directions = usage?.points.map(({ attributes }) => attributes["gen_ai.token.type"]);
    expect(directions).to.deep.equal(["input", "output"]);
    const counted = await scrape(world.gateway.metricsUrl);
    for (const [at, direction] of ["input", "output"].entries()) {
      expect(usage?.points[at]?.sum).to.equal(counted.get(`gateway_model_tokens_total{direction="${direction}"}`));
    }
  });

  it("are told once more at a stop", async () => {
    const before = world.collector.requests.length;
    expect(await world.stopGateway()).to.equal(0);
    expect(world.collector.requests.slice(before).map(({ path }) => path)).to.include("/v1/metrics");
  });
});
