import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { everythingServer } from "../e2e/client/server-program.ts";
import { openWorld } from "../e2e/client/world.ts";
import { modelSdks } from "../e2e/model/sdk.ts";
import { openModelWorld } from "../e2e/model/world.ts";
import { scripts } from "../fixture/model-provider.ts";
import { answerEvents } from "../fixture/model-reply.ts";
import { until } from "../support/event-stream.ts";
import { clientKinds, connectClient } from "../support/mcp-client.ts";
import { type Edits, proxyKinds, type RunningProxy, startProxy } from "./proxy.ts";

/** Between two steps of a slow tool; far more than a proxy needs to pass one on. */
const pauseMs = 250;
/** How long the provider waits for the client to hear what it said. */
const [patientMs, impatientMs] = [60_000, 1_000];
/** What keeps events back: the opposite of what the shipped file says, and deaf to what the gateway says. */
const holdingBack: Edits = [
  ["proxy_buffering off;", "proxy_buffering on; proxy_ignore_headers X-Accel-Buffering;"],
  ["gzip off;", "gzip on; gzip_types text/event-stream; gzip_min_length 0;"],
];

const answer = "It is sunny in Zürich today.";

/** True for a part of a stream that holds a word of the answer. */
function holdsText(part: string): boolean {
  return /"(?:content|text)":"[^"]/.test(part);
}

for (const kind of proxyKinds) {
  describe(`${kind} in front of a gateway, as we ship it`, () => {
    const proxies: RunningProxy[] = [];

    async function proxyFor(gatewayUrl: string, edits?: Edits): Promise<RunningProxy> {
      const proxy = await startProxy(kind, gatewayUrl, edits);
      proxies.push(proxy);
      return proxy;
    }

    afterEach(async function () {
      if (this.currentTest?.state === "failed") for (const proxy of proxies) process.stdout.write(proxy.said());
      await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
    });

    describe("between MCP clients and their servers", () => {
      let world: Awaited<ReturnType<typeof openWorld>>;

      before(async () => {
        world = await openWorld({ servers: () => ({ every: everythingServer() }) });
      });

      after(() => world.stop());

      for (const client of clientKinds) {
        it(`${client}: progress arrives while the tool runs, one by one [R8-6]`, async () => {
          const { url } = await proxyFor(world.gateway.url);
          const agent = await connectClient(client, { url: `${url}/mcp`, headers: { "x-api-key": world.key } });
          expect((await agent.listTools()).length).to.be.above(5);
          let heard = 0;
          const steps = 4;
          const args = { duration: (steps * pauseMs) / 1000, steps };
          const onProgress = (): void => void heard++;
          const { content } = await agent.callTool("trigger-long-running-operation", args, { onProgress });
          expect(content[0]?.text).to.include("completed");
          // The SDK drops progress that is read in one piece with the result, which follows the last step at once.
          expect(heard).to.be.within(steps - 1, steps);
          await agent.close();
        });
      }
    });

    describe("between model clients and their providers", () => {
      let world: Awaited<ReturnType<typeof openModelWorld>>;

      before(async () => {
        world = await openModelWorld({ settings: "tool_passthrough: client\n  holdback_bytes: 0" });
      });

      after(() => world.stop());

      /** What an official client reads of an answer whose provider says no word before the client has heard those before it. */
      async function streamThrough(url: string, index: number, waitMs: number): Promise<object> {
        const sdk = modelSdks(url, world.keys.agent)[index];
        if (sdk === undefined) throw new TypeError("expected a client");
        const parts = answerEvents(sdk.api, { text: answer });
        let [heard, isInTime] = [0, true];
        const untilHeard = async (next: number): Promise<void> => {
          const said = parts.slice(0, next).filter(holdsText).length;
          for (const end = performance.now() + waitMs; isInTime && heard < said; await sleep(5)) {
            isInTime = performance.now() < end;
          }
        };
        world.provider.next(scripts.streams(parts, untilHeard));
        const model = sdk.api === "chat" ? "chat-model" : "messages-model";
        const { text } = await sdk.stream({ model, text: "hello", onText: () => void heard++ });
        return { text, isInTime };
      }

      for (const [index, name] of ["openai 6.x", "anthropic 0.x", "anthropic 1.x"].entries()) {
        it(`${name}: a streamed answer arrives as it is made, word by word`, async () => {
          const { url } = await proxyFor(world.gateway.url);
          expect(await streamThrough(url, index, patientMs)).to.deep.equal({ text: answer, isInTime: true });
        });
      }

      if (kind === "nginx") {
        it("would deliver the answer at once at its end, were it to buffer and compress [R8-6]", async () => {
          const { url } = await proxyFor(world.gateway.url, holdingBack);
          expect(await streamThrough(url, 0, impatientMs)).to.deep.equal({ text: answer, isInTime: false });
        });
      }

      it("the provider is told when the client goes", async () => {
        const { url } = await proxyFor(world.gateway.url);
        const [sdk] = modelSdks(url, world.keys.agent);
        const client = new AbortController();
        world.provider.next(scripts.streams(answerEvents("chat", { text: answer }), 1_000));
        const onText = (): void => client.abort();
        await sdk?.stream({ model: "chat-model", text: "hello", signal: client.signal, onText }).catch(() => undefined);
        await until(() => world.provider.calls.at(-1)?.brokenAtMs, 2_000);
      });
    });
  });
}
