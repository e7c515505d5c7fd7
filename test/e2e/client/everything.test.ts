import { expect } from "chai";
import type { JsonObject } from "../../../core/action/json.ts";
import { clientKinds, connectClient, type Endpoint, type McpClient } from "../../support/mcp-client.ts";
import { everythingServer, type HttpServer, startEverything } from "./server-program.ts";
import { asReadBy, steady } from "./steady.ts";
import { openWorld, type World } from "./world.ts";

/** What a client without sampling, elicitation and roots may call; `get-env` apart. */
const cases: readonly (readonly [tool: string, args: JsonObject])[] = [
  ["echo", { message: 'Grüße, 日本 🍏 \\ " \u0001' }],
  ["echo", { message: "" }],
  ["echo", {}],
  ["get-sum", { a: 0.1, b: 0.2 }],
  ["get-sum", { a: -1.5e-7, b: 9007199254740991 }],
  ["get-sum", { a: "1", b: 2 }],
  ["get-annotated-message", { messageType: "error" }],
  ["get-annotated-message", { messageType: "success", includeImage: true }],
  ["get-annotated-message", { messageType: "debug", includeImage: false }],
  ["get-resource-links", { count: 10 }],
  ["get-resource-links", { count: 11 }],
  ["get-resource-reference", { resourceType: "Text", resourceId: 1 }],
  ["get-resource-reference", { resourceType: "Blob", resourceId: 2 }],
  ["get-resource-reference", { resourceType: "Text", resourceId: -1 }],
  ["get-structured-content", { location: "Chicago" }],
  ["get-tiny-image", {}],
  ["gzip-file-as-resource", { name: "a.gz", data: "data:text/plain,hello", outputType: "resource" }],
  ["gzip-file-as-resource", { name: "b.gz", data: "data:text/plain,hello", outputType: "resourceLink" }],
  ["gzip-file-as-resource", { name: "c.gz", data: "file:///etc/passwd" }],
  ["toggle-simulated-logging", {}],
  ["toggle-simulated-logging", {}],
  ["toggle-subscriber-updates", {}],
  ["toggle-subscriber-updates", {}],
  ["trigger-long-running-operation", { duration: 0.02, steps: 2 }],
];

describe("server-everything through the gateway", () => {
  let world: World;
  let http: HttpServer;
  let sse: HttpServer;

  before(async () => {
    [http, sse] = await Promise.all([startEverything("streamableHttp"), startEverything("sse")]);
    world = await openWorld({
      servers: () => ({ stdio: everythingServer() }),
      keys: { stdio: "tool_prefix: stdio." },
      upstreams: [
        `{ name: http, transport: http, url: "${http.url}", tool_prefix: http. }`,
        `{ name: sse, transport: sse, url: "${sse.url}", tool_prefix: sse. }`,
      ],
    });
  });

  after(async () => {
    await world?.stop();
    await Promise.all([http?.stop(), sse?.stop()]);
  });

  for (const transport of ["stdio", "http", "sse"] as const) {
    for (const kind of clientKinds) {
      describe(`over ${transport}, with the client ${kind}`, () => {
        let direct: McpClient;
        let governed: McpClient;

        before(async () => {
          direct = await connectDirectly(transport);
          governed = await world.connect(kind);
        });

        after(() => direct?.close());

        it("lists the same tools under their prefix", async () => {
          const listed = (await governed.listTools()).filter(({ name }) => name.startsWith(`${transport}.`));
          const prefixed = (await direct.listTools()).map((tool) => ({ ...tool, name: `${transport}.${tool.name}` }));
          expect(listed).to.deep.equal(asReadBy(kind, prefixed));
        });

        it("has a case for every tool", async () => {
          const names = (await direct.listTools()).map(({ name }) => name);
          expect(names.filter((name) => !["get-env", ...cases.map(([tool]) => tool)].includes(name))).to.deep.equal([
            "simulate-research-query", // runs as a task only, which neither revision of a client asks for here
          ]);
        });

        it("gives the same answer of every tool", async () => {
          for (const [tool, args] of cases) {
            const expected = steady(await direct.callTool(tool, args));
            const got = steady(await governed.callTool(`${transport}.${tool}`, args));
            expect(got, `${tool} ${JSON.stringify(args)}`).to.deep.equal(expected);
          }
        });
      });
    }
  }

  async function connectDirectly(transport: "stdio" | "http" | "sse"): Promise<McpClient> {
    const web = { http, sse }[transport as "http" | "sse"];
    const endpoint: Endpoint =
      transport === "stdio" ? everythingServer() : { url: web.url, headers: {}, sse: transport === "sse" };
    return connectClient("v1", endpoint);
  }

  it("starts a server with its configured environment and nothing of the gateway's own", async () => {
    const client = await world.connect("v1");
    const { content } = await client.callTool("stdio.get-env");
    const { TMPDIR, ...env } = JSON.parse(content[0]?.text ?? "") as Record<string, string>;
    expect(env).to.deep.equal(everythingServer().env);
    expect(TMPDIR).to.equal(process.env.TMPDIR);
  });
});
