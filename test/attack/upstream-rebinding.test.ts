import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "chai";
import {
  type Answers,
  type LocalServer,
  Network,
  openWitnessPort,
  serve,
  type WitnessPort,
} from "../e2e/egress/network.ts";
import { type RunningGateway, startGateway } from "../support/gateway.ts";
import { webhookSecret } from "../support/notify-world.ts";
import { opaServerFiles } from "../support/policy-server.ts";
import { siteConfig, siteFiles, siteKey } from "../support/site.ts";
import { until } from "../support/webhook-receiver.ts";

/** Clients that connect again and again by a name of the configuration. MCP servers: `test/e2e/egress/rebinding`. */
const clients = ["provider", "policy", "witness", "webhook"] as const;
type Client = (typeof clients)[number];

/** Addresses of the servers that are meant: the receiver of notices speaks TLS, and has one of its own. */
const meant = {
  provider: "93.184.216.34",
  policy: "93.184.216.34",
  witness: "93.184.216.34",
  webhook: "93.184.216.35",
};
/** A metadata service, in the forms that a name may resolve to. */
const metadata = ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"];

const reviewRule = `rules:
  - id: open.review
    title: What asks for it is reviewed
    decision: review
    severity: low
    risk: 0
    match: { phase: input, tool: held }
    message: somebody has to look at it
`;

/** Paths of the requests that the server for all but the notices gets. */
const pathOf: Readonly<Record<string, Client>> = { "/v1/chat": "provider", "/v1/data": "policy", "/notes/": "witness" };

describe("names of providers, policy servers, witnesses and webhooks that lead elsewhere at the next look-up", () => {
  let network: Network;
  let gateway: RunningGateway | undefined;
  let server: LocalServer;
  let receiver: WitnessPort;
  /** What listens at every address that is forbidden. */
  let hidden: WitnessPort;
  const served = new Map<Client, number>();
  let asked = 0;

  before(async () => {
    [network, receiver, hidden] = await Promise.all([Network.open(), openWitnessPort(), openWitnessPort()]);
    server = await serve(async (request, response) => {
      await text(request);
      const client = Object.entries(pathOf).find(([path]) => request.url?.startsWith(path))?.[1];
      if (client !== undefined) served.set(client, (served.get(client) ?? 0) + 1);
      // Each request needs another connection, and so another look-up.
      const headers = { "content-type": "application/json", connection: "close" };
      if (client === "witness") response.writeHead(request.method === "GET" ? 404 : 200, headers).end();
      else response.writeHead(200, headers).end(JSON.stringify(client === "policy" ? { result: true } : chatAnswer));
    });
    await resolve((address) => [[address]]);
    const env = { ...network.env, SECRET: webhookSecret };
    const files = {
      ...siteFiles(),
      "packs/open/rules/review.yaml": reviewRule,
      "engines/notes/engine.yaml": `${opaServerFiles()["engine.yaml"]}deadline_ms: 30000\n`,
    };
    gateway = await startGateway({ config: configOf(), files, env });
  });

  after(async () => {
    await gateway?.stop();
    await Promise.all([server?.close(), receiver?.close(), hidden?.close(), network?.remove()]);
  });

  /** The policy server is in shadow mode: what it does not answer would stop the other clients from being used. */
  function configOf(): string {
    const peers = `
providers:
  - name: p
    type: openai
    base_url: "http://${nameOf("provider")}:${hidden.port}/v1"
    models: [m]
    max_retries: 0
    breaker: { failures: 1000, rest_ms: 1 }
model_gateway: { routes: [{ model: m, providers: [{ name: p }] }] }
approvals:
  webhooks: [{ name: ops, tenant: acme, url: "https://${nameOf("webhook")}:${hidden.port}/hook", secrets_env: [SECRET] }]
evidence:
  witnesses: [{ name: w, type: http, url: "http://${nameOf("witness")}:${hidden.port}/notes", interval_ms: 1000 }]
sessions: { review_flood: { reviews: 0 } }
`;
    const url = `http://${nameOf("policy")}:${hidden.port}`;
    const engine = `{ type: opa-server, path: engines/notes, url: "${url}", mode: shadow }`;
    return siteConfig({ more: peers }).replace(
      "packs/open }]",
      `packs/open }], deadline_ms: 30000, engines: [${engine}]`,
    );
  }

  function nameOf(client: Client): string {
    return `${client}.rebound.example`;
  }

  /** From now on the name of each client resolves so, given the address of the server that is meant. */
  function resolve(answersOf: (address: string) => Answers): Promise<void> {
    const names = Object.fromEntries(clients.map((client) => [nameOf(client), answersOf(meant[client])]));
    const routes = Object.fromEntries(metadata.map((address) => [address, hidden.port]));
    const servers = { [meant.provider]: server.port, [meant.webhook]: receiver.port };
    return network.write(names, { ...routes, ...servers });
  }

  async function post(path: string, body: object): Promise<number> {
    const headers = { "content-type": "application/json", "x-api-key": siteKey };
    const response = await fetch(`${gateway?.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    await response.text();
    return response.status;
  }

  /** Gives each client a reason to connect; returns the status of the model's answer. */
  async function use(): Promise<number> {
    const args = { command: `ls ${asked++}` };
    const action = { protocol: "shell", tool: "held", target: "builder", arguments: args };
    expect(await post("/v1/actions/evaluate", action)).to.equal(200);
    return post("/v1/chat/completions", { model: "m", messages: [{ role: "user", content: "x" }] });
  }

  /** Uses the clients until `isDone`. Returns the statuses of the model's answers. */
  async function useUntil(isDone: () => boolean | Promise<boolean>, what: string): Promise<ReadonlySet<number>> {
    const statuses = new Set<number>();
    await until(async () => {
      statuses.add(await use());
      await pause(100);
      return isDone();
    }, what);
    return statuses;
  }

  /** Connections that reached the server that is meant. */
  function servedOf(client: Client): number {
    return client === "webhook" ? receiver.connections : (served.get(client) ?? 0);
  }

  /** Uses the clients until each has reached the server that is meant once more. */
  function useAll(): Promise<ReadonlySet<number>> {
    const before = clients.map(servedOf);
    return useUntil(() => clients.every((client, at) => servedOf(client) > Number(before[at])), "a request of each");
  }

  /** Uses the clients until each has looked its name up so often; the answers before the last have been judged then. */
  async function lookUpAll(times: number): Promise<ReadonlySet<number>> {
    const before = await network.lookUps();
    const countOf = (counts: ReadonlyMap<string, number>, client: Client): number => counts.get(nameOf(client)) ?? 0;
    return useUntil(async () => {
      const now = await network.lookUps();
      return clients.every((client) => countOf(now, client) >= countOf(before, client) + times);
    }, `${times} look-ups of each`);
  }

  it("are connected to at the address that was judged, where every second answer is another [S38]", async () => {
    expect(await useAll()).to.deep.equal(new Set([200]));
    await resolve((address) => [[address], ["127.0.0.1"]]);
    await lookUpAll(4);
    expect([...(await useAll())]).to.include(200);
    expect(hidden.connections).to.equal(0);
  });

  it("are not connected to at a metadata service, in any form [S38]", async () => {
    await resolve(() => [metadata]);
    await lookUpAll(2);
    expect(hidden.connections).to.equal(0);
    expect(gateway?.stderr())
      .to.include("egress_refused")
      .and.match(/refused to connect to `\w+\.rebound\.example`/);
  });

  it("are connected to at the meant address where others stand beside it [S38]", async () => {
    await resolve((address) => [["127.0.0.1", ...metadata, address, "10.0.0.1"]]);
    await useAll();
    expect(hidden.connections).to.equal(0);
    const opened = (await network.connections()).map((line) => line.split(" ")[0] ?? "");
    expect(new Set(opened)).to.deep.equal(new Set(Object.values(meant)));
  });

  it("would have led there: a program without a guard is connected", async () => {
    const before = hidden.connections;
    await resolve(() => [["127.0.0.1"], metadata]);
    const places = clients.map((client) => ({ host: nameOf(client), port: hidden.port }));
    await network.connectUnguarded([...places, ...places]);
    await until(() => hidden.connections === before + 2 * clients.length, "a connection at each look-up");
  });
});

const chatAnswer = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1_700_000_000,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};
