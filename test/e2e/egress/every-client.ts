import { expect } from "chai";
import { Agent } from "../../support/agent.ts";
import type { RunningGateway } from "../../support/gateway.ts";
import { webhookSecret } from "../../support/notify-world.ts";
import { siteConfig, siteFiles, siteKey } from "../../support/site.ts";
import { newIssuerKey, signToken } from "../../support/token-issuer.ts";
import { send } from "../../support/wire.ts";

/** The parts of the gateway that connect to what the configuration names. */
export const clients = ["http", "sse", "provider", "issuer", "identity", "webhook", "witness", "collector"] as const;

export type ClientName = (typeof clients)[number];

/** The environment and the files that the configuration needs. */
export const clientEnv: Readonly<Record<string, string>> = { SECRET: webhookSecret };
export const clientFiles: Readonly<Record<string, string>> = {
  ...siteFiles(),
  "packs/open/rules/review.yaml": `rules:
  - id: open.review
    title: Actions that are asked about are reviewed
    decision: review
    severity: high
    risk: 50
    match: { phase: input, tool: held }
    message: somebody has to look at it
`,
};

/** A configuration with every client that there is. `urlOf`: its origin, without a final slash. */
export function clientConfig(urlOf: (client: ClientName) => string, more: string = ""): string {
  const peers = `
providers: [{ name: p, type: openai, base_url: "${urlOf("provider")}/v1", models: [m], max_retries: 0 }]
model_gateway: { routes: [{ model: m, providers: [{ name: p }] }] }
oauth: { issuer: "${urlOf("issuer")}", audience: "${audience}", tenant: acme }
console: { public_url: "https://${consoleHost}", oidc: { issuer: "${urlOf("identity")}", client_id: c, tenant: acme, role: viewer } }
approvals: { webhooks: [{ name: ops, tenant: acme, url: "${urlOf("webhook")}/hook", secrets_env: [SECRET] }] }
evidence: { witnesses: [{ name: w, type: http, url: "${urlOf("witness")}/notes", interval_ms: 1000 }] }
telemetry: { endpoint: "${urlOf("collector")}/otlp", metrics_interval_ms: 1000 }
${more}`;
  const upstreams = [
    `{ name: streamable, transport: http, url: "${urlOf("http")}/streamable" }`,
    `{ name: old, transport: sse, url: "${urlOf("sse")}/sse" }`,
  ];
  return siteConfig({ more: peers }).replace("upstreams: []", `upstreams: [${upstreams.join(", ")}]`);
}

const consoleHost = "console.example";
const audience = "https://gateway.example/mcp";

/** Makes each client connect, or try to. */
export async function useClients({ url, metricsUrl }: RunningGateway, issuer: string): Promise<void> {
  const post = (path: string, headers: Readonly<Record<string, string>>, body: object): Promise<Response> => {
    const type = { "content-type": "application/json" };
    return fetch(url + path, { method: "POST", headers: { ...type, ...headers }, body: JSON.stringify(body) });
  };
  const key = { "x-api-key": siteKey };
  await (await post("/v1/chat/completions", key, { model: "m", messages: [{ role: "user", content: "x" }] })).text();
  const token = await signToken(newIssuerKey("first"), { iss: issuer, aud: audience, sub: "a", exp: 4_000_000_000 });
  expect((await post("/mcp", { authorization: `Bearer ${token}` }, {})).status).to.equal(401);
  const signIn = await send(metricsUrl, { target: "/console/sign-in", headers: [["host", consoleHost]] });
  expect(signIn.status).to.equal(503);
  const agent = new Agent(url, siteKey, "clients");
  await agent.send("tools/list");
  await agent.hangUp();
  const action = { protocol: "shell", tool: "held", target: "builder", arguments: { command: "ls" } };
  expect((await post("/v1/actions/evaluate", key, action)).status).to.equal(200);
}
