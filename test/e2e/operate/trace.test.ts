import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { scripts } from "../../fixture/model-provider.ts";
import { treeOf } from "../../support/collector.ts";
import { clientKinds, type McpClient } from "../../support/mcp-client.ts";
import type { ToldSpan } from "../../support/otlp-reader.ts";
import { newTraceparent, TracedWorld } from "../../support/traced-world.ts";

const [internal, server, client] = [1, 2, 3];
const step = (name: string): readonly [string] => [name];
const wholeRoad = (name: string): readonly unknown[] => [
  name,
  step("evaluate"),
  step("record decision"),
  step(name),
  step("judge output"),
  step("record outcome"),
];

for (const protocol of ["http/protobuf", "http/json"]) {
  describe(`the trace of a request, told by ${protocol}`, () => {
    let world: TracedWorld;
    let agent: McpClient;

    before(async () => {
      world = await TracedWorld.open({
        telemetry: `protocol: ${protocol}`,
        more: "approvals: { hold_seconds: 30 }",
      });
      agent = await world.connect("v2 legacy");
    });
    after(() => world.stop());

    /** A call of a tool whose client says where it stands in a trace, and what the collector was told of it. */
    async function trace(args: JsonObject, tool: string = "echo"): Promise<Traced> {
      const said = newTraceparent();
      await agent.callTool(tool, args, { meta: { traceparent: said.text } });
      return find(said);
    }

    async function find({ traceId, spanId }: ReturnType<typeof newTraceparent>): Promise<Traced> {
      const spans = await world.collector.trace(traceId);
      const roots = spans.filter(({ kind }) => kind === server);
      expect(roots.map(({ parentSpanId }) => parentSpanId)).to.deep.equal([spanId]);
      const root = roots[0] as ToldSpan;
      return { spans, root, tree: treeOf(spans, root), ofKind: (kind) => spans.filter((span) => span.kind === kind) };
    }

    it("is the road, below the client's own span, of a call that is allowed", async () => {
      const { tree, root, ofKind } = await trace({ text: "hello" });
      expect(tree).to.deep.equal(wholeRoad("tools/call echo"));
      expect(root.service).to.equal("agent-governance-gateway");
      expect(root.isError).to.equal(false);
      expect(root.attributes).to.include({
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "gateway.tenant": "acme",
        "gateway.target": "recorder",
        "gateway.decision": "allow",
        "gateway.passage": "answered",
      });
      expect(ofKind(client).map(({ name }) => name)).to.deep.equal(["tools/call echo"]);
      expect(ofKind(internal)).to.have.length(4);
    });

    it("ends before the dispatch where policy blocks, and names decision and rule", async () => {
      const calls = (await world.recorder.calls()).length;
      const { tree, root } = await trace({ refuse: true });
      expect(tree).to.deep.equal(["tools/call echo", step("evaluate"), step("record decision")]);
      expect(root.isError).to.equal(true);
      expect(root.attributes).to.include({
        "error.type": "POLICY_BLOCKED",
        "gateway.decision": "block",
        "gateway.passage": "refused",
      });
      expect(root.attributes["gateway.rule"]).to.deep.equal(["open.refuse"]);
      expect(await world.recorder.calls()).to.have.length(calls);
    });

    it("goes down the road again once a call that is held was approved", async () => {
      const said = newTraceparent();
      const answered = agent.callTool("echo", { hold: said.spanId }, { meta: { traceparent: said.text } });
      for (;;) {
        const held = await world.approve().then(
          () => false,
          () => true,
        );
        if (!held) break;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      expect((await answered).isError).to.not.equal(true);
      const { tree, root } = await find(said);
      const [name, ...road] = wholeRoad("tools/call echo");
      expect(tree).to.deep.equal([name, step("evaluate"), step("record decision"), ...road]);
      expect(root.isError).to.equal(false);
      expect(root.attributes).to.include({ "gateway.decision": "review", "gateway.passage": "answered" });
    });

    it("says that an answer was withheld", async () => {
      const { tree, root } = await trace({ hide: true });
      expect(tree).to.deep.equal(wholeRoad("tools/call echo"));
      expect(root.isError).to.equal(true);
      expect(root.attributes).to.include({
        "error.type": "POLICY_BLOCKED",
        "gateway.decision": "block",
        "gateway.passage": "withheld",
      });
    });

    /** A request of the chat API, and what the collector was told of it. */
    async function ask(model: string, stream: boolean): Promise<Traced & { readonly text: string }> {
      const said = newTraceparent();
      const response = await fetch(`${world.gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": world.keys.agent, "content-type": "application/json", traceparent: said.text },
        body: JSON.stringify({ model, stream, max_tokens: 9, messages: [{ role: "user", content: "hello" }] }),
      });
      const text = await response.text();
      return { text, ...(await find(said)) };
    }

    it("says that a tool failed, by its own account", async () => {
      const { tree, root, ofKind } = await trace({ title: "nothing" }, "read_note");
      expect(tree).to.deep.equal(wholeRoad("tools/call read_note"));
      const [dispatched] = ofKind(client);
      expect(dispatched?.isError).to.equal(true);
      expect(dispatched?.attributes).to.include({ "error.type": "tool_error", "gateway.target": "notes" });
      expect(root.attributes).to.include({ "gateway.passage": "answered", "gateway.decision": "allow" });
    });

    it("goes down the road once for each provider that is asked, and ends as the last of them does", async () => {
      world.provider.next(scripts.dies());
      const { tree, root, ofKind } = await ask("shared-model", false);
      const [name, ...second] = wholeRoad("chat claude-2");
      const first = [step("evaluate"), step("record decision"), step("chat open-2"), step("record outcome")];
      expect(tree).to.deep.equal([name, ...first, ...second]);
      expect(root.isError).to.equal(false);
      const asked = ofKind(client).map(({ isError, attributes }) => [isError, attributes["gen_ai.provider.name"]]);
      expect(asked).to.deep.equal([
        [true, "openai"],
        [false, "anthropic"],
      ]);
    });

    it("ends in error where a stream breaks off", async () => {
      world.provider.next(scripts.dies(['data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n']));
      const { root, ofKind } = await ask("chat-model", true);
      expect(root.attributes["error.type"]).to.equal("PROVIDER_UNAVAILABLE");
      expect(ofKind(client)[0]?.attributes["error.type"]).to.equal("PROVIDER_UNAVAILABLE");
    });

    it("is the road of a streamed model request, with what the provider counted", async () => {
      const { tree, root, ofKind, text } = await ask("chat-model", true);
      expect(text).to.include("[DONE]");
      // The provider's id and model are judged as they come.
      const [name, ...road] = wholeRoad("chat open-1");
      expect(tree).to.deep.equal([name, ...road.slice(0, 2), step("judge output"), ...road.slice(2)]);
      const asked = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "open-1",
      };
      expect(root.attributes).to.include({ ...asked, "gateway.target": "open/open-1" });
      const [dispatched] = ofKind(client);
      expect(dispatched?.attributes).to.include(asked);
      expect(dispatched?.attributes["gen_ai.usage.input_tokens"]).to.be.above(0);
      expect(dispatched?.attributes["gen_ai.usage.output_tokens"]).to.be.above(0);
      const [sent] = world.provider.calls.slice(-1);
      expect(sent?.headers.traceparent).to.equal(`00-${root.traceId}-${dispatched?.spanId}-01`);
    });

    for (const kind of clientKinds) {
      it(`is the same of each official client: ${kind}`, async () => {
        const said = newTraceparent();
        const other = await world.connect(kind);
        await other.callTool("echo", { text: kind }, { meta: { traceparent: said.text } });
        expect((await find(said)).tree).to.deep.equal(wholeRoad("tools/call echo"));
      });
    }

    it("goes on at the upstream: header and `_meta` name the span of the dispatch", async () => {
      const { root, ofKind } = await trace({ text: "on" });
      const [call] = (await world.recorder.calls()).slice(-1);
      const expected = `00-${root.traceId}-${ofKind(client)[0]?.spanId}-01`;
      expect(call?.headers[(call?.headers.indexOf("traceparent") ?? 0) + 1]).to.equal(expected);
      expect(JSON.parse(call?.body ?? "").params._meta).to.deep.equal({ traceparent: expected });
    });
  });
}

interface Traced {
  readonly spans: readonly ToldSpan[];
  readonly root: ToldSpan;
  readonly tree: readonly unknown[];
  readonly ofKind: (kind: number | undefined) => readonly ToldSpan[];
}
