import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { runProgram } from "../../support/program.ts";
import { newTraceparent, TracedWorld } from "../../support/traced-world.ts";

/** As Prometheus asks where it stores exemplars. */
const openMetrics = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5";
const exemplar = / # \{trace_id="([0-9a-f]{32})",span_id="[0-9a-f]{16}"\} \S+ \S+$/;

for (const exemplars of [true, false]) {
  describe(`exemplars, ${exemplars ? "asked for" : "as they are by default"}`, () => {
    let world: TracedWorld;
    let traceId: string;

    before(async () => {
      world = await TracedWorld.open(exemplars ? { telemetry: "exemplars: true" } : {});
      const agent = await world.connect("v2 modern");
      const said = newTraceparent();
      await agent.callTool("echo", {}, { meta: { traceparent: said.text } });
      traceId = said.traceId;
    });
    after(() => world.stop());

    async function scrapeAs(accept: string): Promise<{ readonly type: string; readonly text: string }> {
      const response = await fetch(`${world.gateway.metricsUrl}/metrics`, { headers: { accept } });
      return { type: response.headers.get("content-type") ?? "", text: await response.text() };
    }

    const who = exemplars ? "name the trace of a call" : "name no trace";
    it(`${who}, to scrapers of OpenMetrics`, async () => {
      const { type, text } = await scrapeAs(openMetrics);
      const named = text.split("\n").flatMap((line) => {
        const [, trace] = exemplar.exec(line) ?? [];
        return trace === undefined ? [] : [{ series: line.slice(0, line.indexOf("{")), trace }];
      });
      if (!exemplars) {
        expect(type).to.equal("text/plain; version=0.0.4; charset=utf-8");
        expect(named).to.deep.equal([]);
        expect(text).to.not.include(traceId);
        return;
      }
      expect(type).to.equal("application/openmetrics-text; version=1.0.0; charset=utf-8");
      expect(new Set(named.map(({ series }) => series))).to.deep.equal(
        new Set(["gateway_dispatch_duration_seconds_bucket", "gateway_policy_duration_seconds_bucket"]),
      );
      expect(new Set(named.map(({ trace }) => trace))).to.deep.equal(new Set([traceId]));
    });

    it("are in no answer to others, which promtool reads as it did", async () => {
      const { type, text } = await scrapeAs("*/*");
      expect(type).to.equal("text/plain; version=0.0.4; charset=utf-8");
      expect(text).to.not.include("trace_id");
      const checked = await runProgram("promtool", ["check", "metrics"], text);
      expect(checked).to.deep.equal({ code: 0, stdout: "", stderr: "" });
    });
  });
}

describe("metrics with exemplars", () => {
  let world: TracedWorld;
  let folder: string;

  before(async () => {
    world = await TracedWorld.open({ telemetry: "exemplars: true" });
    folder = await mkdtemp(join(tmpdir(), "exemplar-"));
    const agent = await world.connect("v2 modern");
    for (let at = 0; at < 5; at++) await agent.callTool("echo", {});
  });
  after(async () => {
    await world.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function text(): Promise<string> {
    const response = await fetch(`${world.gateway.metricsUrl}/metrics`, { headers: { accept: openMetrics } });
    return response.text();
  }

  /** Prometheus's own parser of OpenMetrics stands behind a command that wants a time with each sample. */
  async function parse(exposed: string): Promise<{ readonly code: number | null; readonly said: string }> {
    const timed = exposed.replace(/^([a-z]\w*(?:\{.*?\})? \S+)( # .*)?$/gm, "$1 1700000000$2");
    const file = join(folder, "exposed.txt");
    await writeFile(file, timed);
    const { code, stdout, stderr } = await runProgram("promtool", [
      "tsdb",
      "create-blocks-from",
      "openmetrics",
      file,
      join(folder, "blocks"),
    ]);
    return { code, said: stdout + stderr };
  }

  it("are read by Prometheus's parser of OpenMetrics, exemplars and all", async () => {
    const exposed = await text();
    expect(exposed).to.match(/trace_id=/);
    const { code, said } = await parse(exposed);
    expect(code, said).to.equal(0);
  });

  it("would not be with an exemplar that is none, or without their end", async () => {
    const exposed = await text();
    expect(exposed).to.match(/trace_id="[\s\S]*# EOF\n$/);
    expect((await parse(exposed.replace('{trace_id="', "{trace_id="))).code).to.equal(1);
    expect((await parse(exposed.replace("# EOF\n", ""))).code).to.equal(1);
  });

  it("have the same series and kinds as without", async () => {
    const response = await fetch(`${world.gateway.metricsUrl}/metrics`);
    const plain = [...(await response.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)];
    const told = [...(await text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    const expected = plain.map(
      ([, name = "", type]) => `${type === "counter" ? name.replace(/_total$/, "") : name} ${type}`,
    );
    expect(told).to.deep.equal(expected);
  });
});
