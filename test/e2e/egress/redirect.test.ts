import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { webhookSecret } from "../../support/notify-world.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { newIssuerKey, signToken } from "../../support/token-issuer.ts";
import { until } from "../../support/webhook-receiver.ts";
import { runGateway } from "../../unit/cli/run.ts";
import { type LocalServer, openWitnessPort, serve, type WitnessPort } from "./network.ts";

/** Begins of the paths that the clients of the gateway ask for. */
const clients: Readonly<Record<string, string>> = {
  "an upstream over Streamable HTTP": "/streamable",
  "an upstream over HTTP+SSE": "/sse",
  "a model provider": "/v1/chat/completions",
  "the signing keys of the issuer": "/.well-known/",
  "a webhook": "/hook",
  "a witness": "/notes/",
  "traces for a collector": "/otlp/v1/traces",
  "metrics for a collector": "/otlp/v1/metrics",
  "the metrics that doctor reads": "/metrics",
};

const reviewRule = `rules:
  - id: open.review
    title: Actions that are asked about are reviewed
    decision: review
    severity: high
    risk: 50
    match: { phase: input, tool: held }
    message: somebody has to look at it
`;

describe("a redirect to a private listener", () => {
  let folder: string;
  let witness: WitnessPort;
  let redirecting: LocalServer;
  let gateway: RunningGateway;
  const asked: string[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "gateway-redirect-"));
    witness = await openWitnessPort();
    const statuses = [301, 302, 303, 307, 308];
    redirecting = await serve((request, response) => {
      asked.push(request.url ?? "");
      const status = statuses[asked.length % statuses.length] ?? 302;
      response.writeHead(status, { location: `http://127.0.0.1:${witness.port}/` }).end();
    });
    gateway = await startGateway({ folder, config: configuration(), files, env: { SECRET: webhookSecret } });
  });

  after(async () => {
    await gateway?.stop();
    await Promise.all([redirecting?.close(), witness?.close()]);
    await rm(folder, { recursive: true });
  });

  const files = { ...siteFiles(), "packs/open/rules/review.yaml": reviewRule };

  function configuration(): string {
    const { url } = redirecting;
    const more = `
providers: [{ name: p, type: openai, base_url: "${url}/v1", models: [m], max_retries: 0 }]
model_gateway: { routes: [{ model: m, providers: [{ name: p }] }] }
oauth: { issuer: "${url}", audience: "https://gateway.example/mcp", tenant: acme }
approvals: { webhooks: [{ name: ops, tenant: acme, url: "${url}/hook", secrets_env: [SECRET] }] }
evidence: { witnesses: [{ name: w, type: http, url: "${url}/notes", interval_ms: 1000 }] }
telemetry: { endpoint: "${url}/otlp", metrics_interval_ms: 1000 }`;
    const upstreams = [
      `{ name: streamable, transport: http, url: "${url}/streamable" }`,
      `{ name: old, transport: sse, url: "${url}/sse" }`,
    ];
    return siteConfig({ more }).replace("upstreams: []", `upstreams: [${upstreams.join(", ")}]`);
  }

  function post(path: string, headers: Readonly<Record<string, string>>, body: object): Promise<Response> {
    const type = { "content-type": "application/json" };
    return fetch(gateway.url + path, { method: "POST", headers: { ...type, ...headers }, body: JSON.stringify(body) });
  }

  /** Makes each client connect to what the configuration names. */
  async function exercise(): Promise<void> {
    const key = { "x-api-key": siteKey };
    await (await post("/v1/chat/completions", key, { model: "m", messages: [{ role: "user", content: "x" }] })).text();
    const claims = { iss: redirecting.url, aud: "https://gateway.example/mcp", sub: "a", exp: 4_000_000_000 };
    const token = await signToken(newIssuerKey("first"), claims);
    expect((await post("/mcp", { authorization: `Bearer ${token}` }, {})).status).to.equal(401);
    const agent = new Agent(gateway.url, siteKey, "redirect");
    await agent.send("tools/list");
    await agent.hangUp();
    const action = { protocol: "shell", tool: "held", target: "builder", arguments: { command: "ls" } };
    expect((await post("/v1/actions/evaluate", key, action)).status).to.equal(200);
    // Where doctor looks for the metrics of the gateway that holds the data folder, there is another server now.
    const text = await readFile(join(folder, "gateway.yaml"), "utf8");
    const path = join(folder, "doctor.yaml");
    await writeFile(path, text.replace("metrics_port: 0", `metrics_port: ${redirecting.port}`));
    await runGateway(["doctor", "--config", path, "--admin", gateway.adminUrl], { SECRET: webhookSecret });
  }

  it("is not followed by any client of the gateway [S38]", async () => {
    await exercise();
    for (const [client, path] of Object.entries(clients)) {
      await until(() => asked.some((url) => url.startsWith(path)), `a request of ${client}`);
    }
    expect(witness.connections).to.equal(0);
    await fetch(redirecting.url).catch(() => undefined);
    expect(witness.connections, "a client that follows").to.be.above(0);
  });
});
