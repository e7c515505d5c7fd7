import { expect } from "chai";
import { Collector } from "../../support/collector.ts";
import type { McpClient } from "../../support/mcp-client.ts";
import { newTraceparent, TracedWorld } from "../../support/traced-world.ts";

const calls = 200;
/** Five steps and the request itself. */
const spansOfCall = 6;
/** The least there is. */
const maxQueued = 512;

describe("a collector that does not do its part", () => {
  let world: TracedWorld;
  let agent: McpClient;

  beforeEach(async () => {
    world = await TracedWorld.open({ telemetry: `max_queued_spans: ${maxQueued}, timeout_ms: 60000` });
    agent = await world.connect("v2 modern");
  });
  afterEach(() => world.stop());

  /** Calls one after another. Returns the slower half's quickest, in milliseconds. */
  async function callAll(): Promise<number> {
    const durations: number[] = [];
    for (let at = 0; at < calls; at++) {
      const begun = performance.now();
      expect((await agent.callTool("echo", { at })).isError).to.not.equal(true);
      durations.push(performance.now() - begun);
    }
    return durations.sort((a, b) => a - b)[calls / 2] as number;
  }

  it("takes nothing and answers nothing: calls go on, what is too much is dropped and counted", async () => {
    const healthy = await callAll();
    world.collector.status = undefined;
    const hanging = await callAll();
    process.stdout.write(
      `      median of a call: ${healthy.toFixed(1)} ms told, ${hanging.toFixed(1)} ms with a collector that hangs\n`,
    );
    const dropped = await world.counted("dropped");
    // What hangs, what waits, and at most what was gathered of the first half.
    expect(dropped).to.be.within(calls * spansOfCall - maxQueued - 2 * 256, calls * spansOfCall);
    expect(await world.stopGateway()).to.equal(0);
  });

  it("is not there: calls go on, the log says so once, and what is sent once it is back is told", async () => {
    const { port } = world.collector;
    world.collector.stop();
    await callAll();
    await world.collector.await(() => (/"fault":"ECONNREFUSED"/.test(world.gateway.stderr()) ? true : undefined));
    expect(world.gateway.stderr().match(/telemetry_export_failed/g)).to.have.length(1);
    const back = await Collector.start(port);
    try {
      const said = newTraceparent();
      await agent.callTool("echo", {}, { meta: { traceparent: said.text } });
      const told = await back.await(() => (back.spans.length > 0 ? back.spans : undefined));
      expect(told.length).to.be.above(0);
      expect(await world.counted("sent")).to.be.above(0);
    } finally {
      back.stop();
    }
  });

  it("refuses: nothing is sent twice, and what it did not take is counted as failed", async () => {
    world.collector.status = 400;
    await agent.callTool("echo", {});
    await world.collector.await(() => (world.collector.requests.length > 0 ? true : undefined));
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(world.collector.requests).to.have.length(1);
    expect(await world.counted("failed")).to.equal(spansOfCall);
    expect(await world.counted("dropped")).to.equal(0);
    expect(world.gateway.stderr()).to.match(/"fault":"status 400"/);
  });

  it("sends elsewhere: no redirect is followed", async () => {
    world.collector.status = 307;
    world.collector.location = `http://127.0.0.1:${new URL(world.recorder.url).port}/moved`;
    await agent.callTool("echo", {});
    await world.collector.await(() => (world.collector.requests.length > 0 ? true : undefined));
    expect(await world.stopGateway()).to.equal(0);
    expect(JSON.stringify(await world.recorder.requests())).to.not.include("/moved");
  });

  it("is told at a stop what still waited for it", async () => {
    const said = newTraceparent();
    await agent.callTool("echo", {}, { meta: { traceparent: said.text } });
    expect(await world.stopGateway()).to.equal(0);
    expect(world.collector.spans.filter(({ traceId }) => traceId === said.traceId)).to.have.length(spansOfCall);
  });
});
