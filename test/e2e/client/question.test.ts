import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import {
  awaitNotification,
  type ClientSide,
  connectClient,
  type Endpoint,
  handshakeKinds,
  type McpClient,
} from "../../support/mcp-client.ts";
import { everythingServer, type HttpServer, startEverything } from "./server-program.ts";
import { openWorld, type World } from "./world.ts";

const transports = ["stdio", "http", "sse"] as const;
type Transport = (typeof transports)[number];

const documentUri = "demo://resource/static/document/architecture.md";

/** What a server does while it answers, which needs its connection in both directions. */
describe("a session with an upstream", () => {
  let http: HttpServer;
  let sse: HttpServer;

  before(async () => {
    [http, sse] = await Promise.all([startEverything("streamableHttp"), startEverything("sse")]);
  });

  after(() => Promise.all([http?.stop(), sse?.stop()]));

  function connectDirectly(transport: Transport, side: ClientSide): Promise<McpClient> {
    const endpoints: Readonly<Record<Transport, () => Endpoint>> = {
      stdio: everythingServer,
      http: () => ({ url: http.url, headers: {} }),
      sse: () => ({ url: sse.url, headers: {}, sse: true }),
    };
    return connectClient("v1", endpoints[transport](), side);
  }

  for (const transport of transports) {
    describe(`over ${transport}`, () => {
      let world: World;

      before(async () => {
        if (transport === "stdio") world = await openWorld({ servers: () => ({ every: everythingServer() }) });
        else {
          const { url } = { http, sse }[transport];
          world = await openWorld({ upstreams: [`{ name: every, transport: ${transport}, url: "${url}" }`] });
        }
      });

      after(() => world?.stop());

      for (const kind of handshakeKinds) {
        it(`lets the server ask the client ${kind}: sampling, elicitation, roots`, async () => {
          const [own, seenDirectly] = recordingSide();
          const [side, seen] = recordingSide();
          const direct = await connectDirectly(transport, own);
          const governed = await world.connect(kind, side);
          expect(await governed.listTools()).to.deep.equal(await direct.listTools());
          for (const [tool, args] of [
            ["trigger-sampling-request", { prompt: "2 + 2?", maxTokens: 7 }],
            ["trigger-elicitation-request", {}],
            ["get-roots-list", {}],
          ] as const) {
            const expected = await direct.callTool(tool, args);
            expect(await governed.callTool(tool, args), tool).to.deep.equal(expected);
          }
          expect(seen).to.deep.equal(seenDirectly);
          await direct.close();
        });

        it(`streams progress and changes to the client ${kind}`, async () => {
          const client = await world.connect(kind);
          const steps: number[] = [];
          const onProgress = ({ progress }: { progress: number }): void => void steps.push(progress);
          await client.callTool("trigger-long-running-operation", { duration: 0.2, steps: 4 }, { onProgress });
          expect(steps.slice(0, 3)).to.deep.equal([1, 2, 3]);
          await client.subscribe(documentUri);
          await client.callTool("toggle-subscriber-updates");
          const changed = await awaitNotification(client, ({ method }) => method === "notifications/resources/updated");
          expect(changed.params?.uri).to.equal(documentUri);
          await client.callTool("toggle-subscriber-updates");
        });
      }

      it("judges and records what the server asks, as an action of its own", async () => {
        const records = await world.evidence.recordsOf();
        const asked = records.filter(({ action }) => action.tool === "sampling/createMessage");
        const once = [
          ["decision", "dispatched", "generate", "every"],
          ["outcome", "success", "generate", "every"],
        ];
        expect(asked.map(({ kind, effect, action }) => [kind, effect, action.capability, action.target])).to.deep.equal(
          handshakeKinds.flatMap(() => once),
        );
      });
    });
  }

  describe("beside one that is shared, where policy allows no model", () => {
    let world: World;

    before(async () => {
      const rules = `rules:
  - { id: test.allow, title: Everything, decision: allow, match: { phase: [list, input] } }
  - { id: test.no-model, title: No model, decision: block, match: { capability: generate }, message: no model here }
`;
      world = await openWorld({
        servers: () => ({ every: everythingServer(), shared: everythingServer() }),
        keys: { shared: "connection: shared, tool_prefix: shared_" },
        rules,
      });
    });

    after(() => world?.stop());

    it("offers nothing of the shared one for which the server would have to ask a client", async () => {
      const [side, seen] = recordingSide();
      const client = await world.connect("v1", side);
      const names = (await client.listTools()).map(({ name }) => name);
      expect(names).to.include("shared_echo").and.to.include("trigger-sampling-request");
      expect(names).not.to.include("shared_trigger-sampling-request");
      expect(seen.size).to.equal(0);
    });

    it("gets an error for what it asks, and the client is never asked", async () => {
      const [side, seen] = recordingSide();
      const client = await world.connect("v1", side);
      const { content, isError } = await client.callTool("trigger-sampling-request", { prompt: "x" });
      expect(isError).to.equal(true);
      expect(content[0]?.text).to.include("blocked by policy: no model here (rule test.no-model)");
      expect(seen.has("sampling")).to.equal(false);
    });
  });
});

/** A side that answers alike each time, and what it was asked. */
function recordingSide(): readonly [ClientSide, ReadonlyMap<string, JsonObject>] {
  const seen = new Map<string, JsonObject>();
  const answer =
    (name: string, value: JsonObject) =>
    (params: JsonObject): JsonObject => {
      const { _meta, ...asked } = params;
      seen.set(name, asked);
      return value;
    };
  const side: ClientSide = {
    sampling: answer("sampling", { role: "assistant", model: "test", content: { type: "text", text: "4" } }),
    elicitation: answer("elicitation", { action: "accept", content: { name: "Ada", check: true } }),
    roots: () => ({ roots: [{ uri: "file:///work", name: "work" }] }),
  };
  return [side, seen];
}
