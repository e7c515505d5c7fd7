import { createHash, randomBytes } from "node:crypto";
import { principalId } from "../../core/action/principal.ts";
import type { Role } from "../../core/action/role.ts";
import { refusalMetaKey } from "../../core/http/refusal.ts";
import { Agent, type Answer } from "./agent.ts";
import { EvidenceReader } from "./evidence-reader.ts";
import { type RunningGateway, startGateway } from "./gateway.ts";
import { allowEverything } from "./pack.ts";

/**
 * Who holds a key: `agent` asks, `rita` answers, `adam` is an admin, `vera` may only look, `foreign` is an admin of
 * another tenant.
 */
export type Person = "agent" | "other" | "rita" | "adam" | "vera" | "foreign";

const people: Readonly<Record<Person, readonly [tenant: string, role: Role]>> = {
  agent: ["acme", "operator"],
  other: ["acme", "operator"],
  rita: ["acme", "operator"],
  adam: ["acme", "admin"],
  vera: ["acme", "viewer"],
  foreign: ["other", "admin"],
};

export const reviewEverything = `rules:
  - id: open.review
    title: These tools are reviewed
    decision: review
    severity: high
    risk: 50
    match: { phase: input, tool: [echo, ECHO, reader, approve] }
    message: somebody has to look at it
`;

export interface HeldOptions {
  /** Entries of `upstreams`, as YAML flow. */
  readonly upstreams: readonly string[];
  /** Entries of `policy.plugins`, as YAML flow. */
  readonly plugins?: readonly string[];
  /** What stands below `approvals`, as YAML flow. */
  readonly approvals?: string;
  /** Further entries of `sessions`, as YAML flow. */
  readonly sessions?: string;
  /** Further top-level keys of `gateway.yaml`. */
  readonly more?: string;
  /** Text of a further rule file of the pack. */
  readonly rules?: string;
  readonly folder?: string;
  /** See `GatewayOptions`. */
  readonly alone?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly deadlineMs?: number;
}

/** What a refused call is told for machines. */
export interface Told {
  readonly code: string;
  readonly executed: boolean;
  readonly approval?: { readonly id: string; readonly state: string } | null;
  readonly former_approval?: { readonly id: string; readonly state: string; readonly reason: string | null };
}

/** What the admin port said to a reviewer. */
export interface Reviewed {
  readonly status: number;
  readonly body: { readonly code?: string; readonly detail?: string; readonly approval?: { readonly state: string } };
}

/** The keys of a site, and how to start gateways that hold every call of a tool for review. */
export class HeldSite {
  readonly options: HeldOptions;
  readonly #keys: Record<Person, string>;
  #gateway: RunningGateway | null = null;
  #agents: Agent[] = [];

  constructor(options: HeldOptions) {
    this.options = options;
    this.#keys = Object.fromEntries(Object.keys(people).map((person) => [person, newKey()])) as Record<Person, string>;
  }

  get gateway(): RunningGateway {
    if (this.#gateway === null) throw new Error("the site has no gateway running");
    return this.#gateway;
  }

  get evidence(): EvidenceReader {
    return new EvidenceReader(this.gateway.adminUrl, this.#keys.rita);
  }

  key(person: Person): string {
    return this.#keys[person];
  }

  /** The id of the principal that somebody's key stands for. */
  principal(person: Person): string {
    const [tenant] = people[person];
    return principalId(tenant, `sha256:${hashOf(this.#keys[person])}`);
  }

  /** Gives somebody another key, from the next configuration on. */
  rotate(person: Person): void {
    this.#keys[person] = newKey();
  }

  /** Starts a gateway; `over` changes its options for this start. */
  async start(over: Partial<HeldOptions> = {}): Promise<void> {
    const { folder, alone = false, env, deadlineMs, rules } = { ...this.options, ...over };
    const review = { "packs/open/rules/review.yaml": reviewEverything };
    const further = rules === undefined ? {} : { "packs/open/rules/further.yaml": rules };
    this.#gateway = await startGateway({
      alone,
      config: this.config(over),
      files: { ...allowEverything("packs/open"), ...review, ...further },
      ...(folder === undefined ? {} : { folder }),
      ...(env === undefined ? {} : { env }),
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
    });
  }

  config(over: Partial<HeldOptions> = {}): string {
    const { upstreams, plugins = [], approvals = "", sessions = "", more = "" } = { ...this.options, ...over };
    const keys = Object.entries(people).map(([person, [tenant, role]]) => {
      const hash = hashOf(this.#keys[person as Person]);
      return `  - { id: ${person}, tenant: ${tenant}, role: ${role}, key_hash: "sha256:${hash}" }`;
    });
    return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${keys.join("\n")}
upstreams: [${upstreams.join(", ")}]
policy: { packs: [{ path: packs/open }]${plugins.length === 0 ? "" : `, plugins: [${plugins.join(", ")}]`} }
approvals: { ${approvals} }
sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 }, ${sessions} }
${more}
`;
  }

  /** An agent on a connection of its own, which the site hangs up. */
  agent(person: Person = "agent", label?: string): Agent {
    const agent = new Agent(this.gateway.url, this.#keys[person], label);
    this.#agents.push(agent);
    return agent;
  }

  /** Calls a tool on a new connection. */
  call(tool: string, args: object = {}, person: Person = "agent", label?: string): Promise<Answer> {
    return this.agent(person, label).call(tool, args);
  }

  /** Calls a tool that is held, and returns the id of its approval. */
  async hold(tool: string, args: object = {}, person: Person = "agent", label?: string): Promise<string> {
    return heldId(await this.call(tool, args, person, label));
  }

  async review(id: string, verb: "approve" | "deny", person: Person = "rita", body: object = {}): Promise<Reviewed> {
    const response = await fetch(`${this.gateway.adminUrl}/admin/v1/approvals/${id}/${verb}`, {
      method: "POST",
      headers: { "x-api-key": this.#keys[person], "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Reviewed["body"] };
  }

  /** Says yes. Throws for every answer but 200. */
  async approve(id: string): Promise<void> {
    const { status, body } = await this.review(id, "approve");
    if (status !== 200) throw new Error(`expected 200, got ${status}: ${JSON.stringify(body)}`);
  }

  /** Holds a call and says yes to it. */
  async holdAndApprove(tool: string, args: object = {}, person: Person = "agent", label?: string): Promise<string> {
    const id = await this.hold(tool, args, person, label);
    await this.approve(id);
    return id;
  }

  /** The state of an approval, over the admin port. */
  async show(id: string): Promise<{ readonly state: string; readonly reason?: string }> {
    const response = await fetch(`${this.gateway.adminUrl}/admin/v1/approvals/${id}`, {
      headers: { "x-api-key": this.#keys.rita },
    });
    return ((await response.json()) as { approval: { state: string; reason?: string } }).approval;
  }

  async hangUp(): Promise<void> {
    await Promise.all(this.#agents.splice(0).map((agent) => agent.hangUp()));
  }

  async stop(): Promise<void> {
    await this.hangUp();
    await this.gateway.stop();
    this.#gateway = null;
  }

  async kill9(): Promise<void> {
    await this.gateway.kill9();
    await this.hangUp();
    this.#gateway = null;
  }
}

/** What a refused call was told. */
export function toldOf({ result, error }: Answer): Told {
  const meta = (result as { _meta?: Record<string, Told> } | undefined)?._meta ?? error?.data;
  const told = (meta as Record<string, Told> | undefined)?.[refusalMetaKey];
  if (told === undefined) throw new Error(`expected a refusal, got \`${JSON.stringify(result ?? error)}\``);
  return told;
}

/** The id of the approval that a held call waits for. */
export function heldId(answer: Answer): string {
  const { approval, code } = toldOf(answer);
  if (approval?.state !== "pending") throw new Error(`expected a held call, got \`${code}\``);
  return approval.id;
}

/** The words that a call was answered with. */
export function textOf({ result, error }: Answer): string {
  return result?.content?.map(({ text }) => text).join("\n") ?? error?.message ?? "";
}

/** An upstream over HTTP, as an entry of the configuration. */
export function overHttp(name: string, url: string, more = ""): string {
  return `{ name: ${name}, transport: http, url: "${url}", protocol: legacy, connection: shared${more} }`;
}

function hashOf(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}
