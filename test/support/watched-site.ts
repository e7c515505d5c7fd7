import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import type { ActionRecord } from "../../core/evidence/record/record.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { ModelProvider } from "../fixture/model-provider.ts";
import { Agent } from "./agent.ts";
import { EvidenceReader } from "./evidence-reader.ts";
import { type RunningGateway, startGateway } from "./gateway.ts";
import { MoodyUpstream } from "./moody-upstream.ts";
import { allowEverything } from "./pack.ts";

/** A call of a tool, and what the tool says; or a request to a model. */
export type Step =
  | { readonly tool: string; readonly args?: object; readonly says?: string }
  | { readonly model: string; readonly text: string };

/** What became of one step. `reached`: the upstream's or the provider's own log has it. */
export interface Result {
  readonly state: "answered" | "held" | "blocked";
  readonly reached: boolean;
}

export interface WatchedSiteOptions {
  /** Settings of session-watch, and its rules in shadow mode, as YAML. */
  readonly settings?: string;
  readonly shadowRules?: string;
  /** Further top-level keys. */
  readonly more?: string;
  /** Shipped packs beside session-watch. */
  readonly packs?: readonly string[];
  /** In place of those of most tests. */
  readonly upstreams?: Readonly<Record<string, WatchedUpstream>>;
  readonly agents?: number;
}

/** An upstream's tools with their capabilities, and what the operator says of them. */
export interface WatchedUpstream {
  readonly tools: Readonly<Record<string, string>>;
  readonly untrusted: readonly string[];
  readonly facts?: object;
}

/** Each upstream's tools, and what they do. What those that `outside` names bring in, strangers wrote. */
const usualTools: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  files: { read_file: "read", write_file: "write", delete_file: "delete", read_vault: "read", odd_read: "read" },
  web: { fetch_page: "read", http_post: "network" },
  mail: { read_mail: "read", send_mail: "network" },
  tracker: { read_issue: "read", ask_owner: "write" },
  code: { read_repository: "read", git_push: "network", run_command: "execute" },
  data: { execute_sql: "write" },
};
const outside = ["fetch_page", "read_mail", "read_issue", "read_repository"];
const usualUpstreams: Readonly<Record<string, WatchedUpstream>> = Object.fromEntries(
  Object.entries(usualTools).map(([name, tools]) => {
    return [name, { tools, untrusted: Object.keys(tools).filter((tool) => outside.includes(tool)) }];
  }),
);

/** Everything is allowed but one tool that is blocked and one that is held: whatever else is held, session-watch holds. */
const rules = `rules:
  - { id: open.vault, title: Nobody opens it, decision: block, session_risk: 0, match: { phase: input, tool: read_vault } }
  - { id: open.owner, title: Owners are asked, decision: review, session_risk: 0, match: { phase: input, tool: ask_owner } }
  - { id: open.odd, title: An odd thing to read, decision: allow, session_risk: 20, match: { phase: input, tool: odd_read } }
`;

/** A gateway under session-watch and little else, between an agent and upstreams and a provider that keep logs. */
export class WatchedSite {
  readonly gateway: RunningGateway;
  /** Of an operator of the tenant. */
  readonly key: string;
  readonly foreignKey: string;
  readonly #agentKeys: string[];
  readonly #upstreams: Readonly<Record<string, WatchedUpstream>>;
  readonly #upstream: MoodyUpstream;
  readonly #provider: ModelProvider;

  private constructor(
    gateway: RunningGateway,
    keys: readonly [string, string],
    agentKeys: readonly string[],
    upstreams: Readonly<Record<string, WatchedUpstream>>,
    upstream: MoodyUpstream,
    provider: ModelProvider,
  ) {
    this.gateway = gateway;
    this.#upstreams = upstreams;
    [this.key, this.foreignKey] = keys;
    this.#agentKeys = [...agentKeys];
    this.#upstream = upstream;
    this.#provider = provider;
  }

  static async open(options: WatchedSiteOptions = {}): Promise<WatchedSite> {
    const upstream = await MoodyUpstream.start();
    const provider = await ModelProvider.start();
    const { upstreams = usualUpstreams, agents = maxAgents } = options;
    const names = Object.values(upstreams).flatMap(({ tools }) => Object.keys(tools));
    upstream.publish(names.map((name) => ({ name, description: name, inputSchema: { type: "object" } })));
    const keys = [newKey(), newKey()] as const;
    const agentKeys = Array.from({ length: agents }, newKey);
    const gateway = await startGateway({
      config: configFor(upstream, provider, keys, agentKeys, options),
      files: { ...allowEverything("packs/open"), "packs/open/rules/more.yaml": rules },
      env: { PROVIDER_KEY: newKey() },
    });
    return new WatchedSite(gateway, keys, agentKeys, upstreams, upstream, provider);
  }

  /** A session of an agent that has none beside it, or of the one with this key; on both roads. */
  session(label: string, key: string = this.newAgentKey()): WatchedSession {
    return new WatchedSession(this, label, key, this.#upstreams, this.#upstream, this.#provider);
  }

  /** Returns the key of an agent that nobody used yet. */
  newAgentKey(): string {
    const key = this.#agentKeys.pop();
    if (key === undefined) throw new Error("expected no more sessions than agents");
    return key;
  }

  /** Returns the id of the next new agent's key. */
  get nextAgent(): string {
    return `agent-${this.#agentKeys.length - 1}`;
  }

  /** Declares a manifest of the next new agent. */
  async declare(manifest: object): Promise<void> {
    const response = await fetch(`${this.gateway.adminUrl}/admin/v1/manifests`, {
      method: "POST",
      headers: { "x-api-key": this.key, "content-type": "application/json" },
      body: JSON.stringify({ principal: this.nextAgent, ...manifest }),
    });
    if (response.status !== 200)
      throw new Error(`expected a manifest, got ${response.status} ${await response.text()}`);
  }

  /** The records of one session. */
  records(label: string): Promise<readonly ActionRecord[]> {
    return new EvidenceReader(this.gateway.adminUrl, this.key).recordsOf((each) => each === label);
  }

  async stop(): Promise<void> {
    await this.gateway.stop();
    this.#upstream.stop();
    this.#provider.stop();
  }
}

/** One session; its steps are taken one after the other. */
export class WatchedSession {
  readonly label: string;
  readonly #site: WatchedSite;
  readonly #key: string;
  readonly #upstreams: Readonly<Record<string, WatchedUpstream>>;
  readonly #upstream: MoodyUpstream;
  readonly #provider: ModelProvider;
  readonly #agent: Agent;

  constructor(
    site: WatchedSite,
    label: string,
    key: string,
    upstreams: Readonly<Record<string, WatchedUpstream>>,
    upstream: MoodyUpstream,
    provider: ModelProvider,
  ) {
    this.#upstreams = upstreams;
    this.label = label;
    this.#site = site;
    this.#key = key;
    this.#upstream = upstream;
    this.#provider = provider;
    this.#agent = new Agent(site.gateway.url, key, label);
  }

  take(step: Step): Promise<Result> {
    return "tool" in step ? this.#call(step) : this.#ask(step);
  }

  /** All of them, whatever becomes of each. */
  async run(steps: readonly Step[]): Promise<readonly Result[]> {
    const results: Result[] = [];
    for (const step of steps) results.push(await this.take(step));
    return results;
  }

  end(): Promise<void> {
    return this.#agent.hangUp();
  }

  /** As clients are shown it; `upstream/tool` where several have a tool of that name. */
  #nameOf(tool: string): string {
    if (tool.includes("/")) return tool.replace("/", "_");
    const [upstream] = Object.entries(this.#upstreams).find(([, { tools }]) => Object.hasOwn(tools, tool)) ?? [];
    return `${upstream}_${tool}`;
  }

  async #call({ tool, args = {}, says = "done" }: Extract<Step, { tool: string }>): Promise<Result> {
    const before = this.#upstream.calls.length;
    this.#upstream.mood = (response, id) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: says }] } }));
    };
    const { result, error } = await this.#agent.call(this.#nameOf(tool), args);
    const text = result?.content?.[0]?.text ?? `${error?.message}`;
    const reached = this.#upstream.calls.length > before;
    if (result?.isError !== true && error === undefined) return { state: "answered", reached };
    return { state: text.startsWith("Held for review") ? "held" : "blocked", reached };
  }

  async #ask({ model, text }: Extract<Step, { model: string }>): Promise<Result> {
    const before = this.#provider.calls.length;
    const response = await fetch(`${this.#site.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-api-key": this.#key,
        "x-gateway-session-id": this.label,
      },
      body: JSON.stringify({ model, messages: [{ role: "user", content: text }] }),
    });
    const reached = this.#provider.calls.length > before;
    const body = await response.text();
    if (response.status === 200) return { state: "answered", reached };
    return { state: body.includes("approval_required") ? "held" : "blocked", reached };
  }
}

function configFor(
  upstream: MoodyUpstream,
  provider: ModelProvider,
  [key, foreign]: readonly [string, string],
  agentKeys: readonly string[],
  { settings = "", shadowRules = "", more = "", packs = [], upstreams = usualUpstreams }: WatchedSiteOptions,
): string {
  const entries = Object.entries(upstreams).map(([name, { tools, untrusted: strange, facts }]) => {
    const capabilities = Object.entries(tools).map(([tool, capability]) => `${tool}: ${capability}`);
    const untrusted = strange.length === 0 ? "" : `, untrusted: [${strange}]`;
    const stated = facts === undefined ? "" : `, facts: ${JSON.stringify(facts)}`;
    return `  - { name: ${name}, transport: http, url: "${upstream.url}", protocol: legacy, connection: shared, tool_prefix: ${name}_, capabilities: { ${capabilities} }${untrusted}${stated} }`;
  });
  return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
  - { id: ci, tenant: acme, role: operator, key_hash: "sha256:${sha256(key)}" }
  - { id: other, tenant: umbrella, role: viewer, key_hash: "sha256:${sha256(foreign)}" }
${agentKeys.map((each, index) => `  - { id: agent-${index}, tenant: acme, role: operator, key_hash: "sha256:${sha256(each)}" }`).join("\n")}
upstreams:
${entries.join("\n")}
providers: [{ name: open, type: openai, base_url: "${provider.baseUrl("openai")}", api_key_env: PROVIDER_KEY, models: [usual, other] }]
model_gateway:
  routes:
    - { model: usual, providers: [{ name: open }] }
    - { model: other, providers: [{ name: open }] }
policy:
  packs:
    - path: packs/open
${packs.map((name) => `    - path: "${join(repositoryRoot, "policy-packs", name)}"`).join("\n")}
    - path: "${join(repositoryRoot, "policy-packs/session-watch")}"
      settings: {${settings}}
      ${shadowRules === "" ? "" : `shadow_rules: [${shadowRules}]`}
usage: { requests_per_minute: 1000000, tokens_per_minute: 1000000000 }
${more}
`;
}

const maxAgents = 400;

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}
