import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { canaryOf, formsOf } from "../../support/canary.ts";
import type { McpClient } from "../../support/mcp-client.ts";
import type { Recorded } from "../../support/recorder.ts";
import { newTraceparent, TracedWorld } from "../../support/traced-world.ts";

/** What is no trace: the attributes of a span must not depend on it, nor may the call fail. */
const malformed: readonly string[] = [
  "",
  "00-1-2-01",
  `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
  `00-4bf92f3577b34da6a3ce929d0e0e4736-${"0".repeat(16)}-01`,
  "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
  "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01, 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
];

function metaOf(call: Recorded | undefined): JsonObject {
  return JSON.parse(call?.body ?? "{}").params._meta;
}

describe("what a client says of its trace", () => {
  let world: TracedWorld;
  let agent: McpClient;

  before(async () => {
    world = await TracedWorld.open();
    agent = await world.connect("v2 legacy");
  });
  after(() => world.stop());

  async function call(meta: JsonObject): Promise<Recorded> {
    expect((await agent.callTool("echo", {}, { meta })).isError).to.not.equal(true);
    return (await world.recorder.calls()).at(-1) as Recorded;
  }

  /** Over Streamable HTTP without a handshake. */
  async function post(headers: Readonly<Record<string, string>>): Promise<Recorded> {
    const response = await fetch(`${world.gateway.url}/mcp`, {
      method: "POST",
      headers: { "x-api-key": world.keys.agent, "content-type": "application/json", ...headers },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}',
    });
    expect(response.status).to.equal(200);
    return (await world.recorder.calls()).at(-1) as Recorded;
  }

  it("begins a new trace where it cannot be read, and never fails the call", async () => {
    for (const traceparent of malformed) {
      const sent = metaOf(await call({ traceparent, tracestate: "a=1" }));
      expect(Object.keys(sent)).to.deep.equal(["traceparent"]);
      expect(sent.traceparent).to.match(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
      expect(sent.traceparent).to.not.include("4bf92f3577b34da6a3ce929d0e0e4736");
    }
  });

  it("is read from the header where `_meta` has none, and from `_meta` where both have", async () => {
    const [inHeader, inMeta] = [newTraceparent(), newTraceparent()];
    expect(metaOf(await post({ traceparent: inHeader.text })).traceparent).to.include(inHeader.traceId);
    const headers = { "x-api-key": world.keys.agent, "content-type": "application/json", traceparent: inHeader.text };
    const params = { name: "echo", arguments: {}, _meta: { traceparent: inMeta.text } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    await fetch(`${world.gateway.url}/mcp`, { method: "POST", headers, body });
    expect(metaOf((await world.recorder.calls()).at(-1)).traceparent).to.include(inMeta.traceId);
  });

  it("decides nothing about what is told: a trace that it left out is told all the same", async () => {
    const said = newTraceparent("00");
    expect(metaOf(await call({ traceparent: said.text })).traceparent).to.match(/-01$/);
    expect(await world.collector.trace(said.traceId)).to.have.length.above(4);
  });

  it("takes nothing along of `tracestate` and `baggage`, in `_meta` or in headers [S78]", async () => {
    const { text } = newTraceparent();
    const state = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";
    const kept = await call({ traceparent: text, tracestate: state, baggage: "user=alice" });
    expect(Object.keys(metaOf(kept))).to.deep.equal(["traceparent"]);
    const sent = await post({ traceparent: text, tracestate: state, baggage: "user=alice" });
    expect(JSON.stringify(sent)).to.not.match(/rojo|alice|tracestate|baggage/);
  });

  it("reaches an upstream over stdio in `_meta`", async () => {
    const said = newTraceparent();
    await agent.callTool("list_notes", {}, { meta: { traceparent: said.text } });
    const spans = await world.collector.trace(said.traceId);
    const dispatched = spans.find(({ kind }) => kind === 3);
    const [sent] = (await world.stdioCalls()).slice(-1);
    const params = sent?.params as { readonly _meta: JsonObject } | undefined;
    expect(params?._meta.traceparent).to.equal(`00-${said.traceId}-${dispatched?.spanId}-01`);
  });

  it("is no part of what was approved: another trace uses the same approval [S50]", async () => {
    const args = { hold: "once" };
    const said = newTraceparent();
    const first = await agent.callTool("echo", args, { meta: { traceparent: said.text } });
    expect(first.isError).to.equal(true);
    const spans = await world.collector.trace(said.traceId);
    expect(spans.map(({ name }) => name)).to.deep.equal(["evaluate", "record decision", "tools/call echo"]);
    expect(spans.at(-1)).to.deep.include({ kind: 2, isError: true });
    expect(spans.at(-1)?.attributes).to.include({
      "error.type": "REVIEW_REQUIRED",
      "gateway.decision": "review",
      "gateway.passage": "refused",
    });
    await world.approve();
    const second = await agent.callTool("echo", args, { meta: { traceparent: newTraceparent().text } });
    expect(second.isError).to.not.equal(true);
    const third = await agent.callTool("echo", args, { meta: { traceparent: newTraceparent().text } });
    expect(third.isError).to.equal(true);
  });
});

describe("what is sampled", () => {
  let world: TracedWorld;

  before(async () => {
    world = await TracedWorld.open({ telemetry: "sample_percent: 0" });
  });
  after(() => world.stop());

  it("is not for the client to say: with 0 of 100 its flag has nothing told, and the trace goes on unsampled", async () => {
    const agent = await world.connect("v2 modern");
    const said = newTraceparent("01");
    await agent.callTool("echo", {}, { meta: { traceparent: said.text } });
    const sent = metaOf((await world.recorder.calls()).at(-1)).traceparent;
    expect(sent).to.match(new RegExp(`^00-${said.traceId}-[0-9a-f]{16}-00$`));
    expect(sent).to.not.include(said.spanId);
    await world.stopGateway();
    expect(world.collector.requests).to.deep.equal([]);
  });
});

describe("what the environment says of OpenTelemetry", () => {
  const canary = canaryOf("environment");
  let world: TracedWorld;

  before(async () => {
    world = await TracedWorld.open({
      env: {
        OTEL_SDK_DISABLED: "true",
        OTEL_SERVICE_NAME: canary,
        OTEL_RESOURCE_ATTRIBUTES: `team=${canary}`,
        OTEL_TRACES_SAMPLER: "always_off",
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
        OTEL_EXPORTER_OTLP_HEADERS: `x-team=${canary}`,
      },
    });
  });
  after(() => world.stop());

  it("changes nothing: the file says who is told, and what", async () => {
    const agent = await world.connect("v2 modern");
    const said = newTraceparent();
    await agent.callTool("echo", {}, { meta: { traceparent: said.text } });
    const spans = await world.collector.trace(said.traceId);
    expect(new Set(spans.map(({ service }) => service))).to.deep.equal(new Set(["agent-governance-gateway"]));
    const [request] = world.collector.requests;
    expect(request?.body.toString("latin1")).to.not.include(canary);
    expect(JSON.stringify(request?.headers)).to.not.include(canary);
  });
});

describe("what a collector is told", () => {
  let world: TracedWorld;

  before(async () => {
    world = await TracedWorld.open();
  });
  after(() => world.stop());

  it("has no argument, answer, prompt, key, session or name of a stranger's choosing in it [S66]", async () => {
    const canary = {
      argument: canaryOf("argument"),
      member: canaryOf("member"),
      prompt: canaryOf("prompt"),
      answer: canaryOf("answer"),
      tool: canaryOf("tool"),
      model: canaryOf("model"),
      label: canaryOf("label"),
      agent: canaryOf("agent"),
    };
    const agent = await world.connect("v1");
    await agent.callTool("echo", { text: canary.argument, [canary.member]: 1 });
    await agent.callTool("echo", { refuse: canary.argument });
    await agent.callTool("echo", { hold: canary.argument });
    const unknown = await agent.callTool(canary.tool).then(
      () => "answered",
      () => "refused",
    );
    expect(unknown).to.equal("refused");
    const ask = async (model: string, text: string): Promise<number> => {
      const headers = {
        "x-api-key": world.keys.agent,
        "content-type": "application/json",
        "x-gateway-session-id": canary.label,
        "user-agent": canary.agent,
      };
      const body = JSON.stringify({ model, messages: [{ role: "user", content: text }] });
      return (await fetch(`${world.gateway.url}/v1/chat/completions`, { method: "POST", headers, body })).status;
    };
    expect(await ask("chat-model", canary.prompt)).to.equal(200);
    expect(await ask(canary.model, canary.prompt)).to.equal(404);
    await world.stopGateway();

    const names = new Set(world.collector.spans.map(({ name }) => name));
    expect([...names]).to.include.members(["tools/call echo", "tools/call", "chat open-1", "chat"]);
    const told = Buffer.concat(world.collector.requests.map(({ body }) => body)).toString("latin1");
    const secrets = [...Object.values(canary), ...Object.values(world.keys), "Hello."];
    for (const secret of secrets) for (const form of formsOf(secret)) expect(told).to.not.include(form);
    expect(told).to.include("open.refuse");
    // The pair: what a span may say is there, and the log of the upstream has what the collector has not.
    expect(JSON.stringify(await world.recorder.calls())).to.include(canary.argument);
    expect(world.collector.requests[0]?.headers.authorization).to.equal(world.collectorSecret);
    expect(world.gateway.stderr()).to.not.include(world.collectorSecret.slice("Bearer ".length));
  });
});
