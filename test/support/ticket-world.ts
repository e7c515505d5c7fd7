import { createHash, randomBytes } from "node:crypto";
import { type PresentedTicket, ticketMetaKey } from "../../core/action/capability-ticket.ts";
import type { JsonObject } from "../../core/action/json.ts";
import { principalId } from "../../core/action/principal.ts";
import type { Role } from "../../core/action/role.ts";
import type { ActionRecord } from "../../core/evidence/record/record.ts";
import type { TicketView } from "../../core/ticket/ticket-issuer.ts";
import { EvidenceReader } from "./evidence-reader.ts";
import { type RunningGateway, startGateway } from "./gateway.ts";
import { type ClientKind, connectClient, type McpClient, type ToolResult } from "./mcp-client.ts";
import { allowEverything } from "./pack.ts";
import { type Recorder, startRecorder } from "./recorder.ts";

export type Person = "agent" | "other" | "rita" | "adam" | "vera" | "foreign";

const people: Readonly<Record<Person, readonly [tenant: string, role: Role]>> = {
  agent: ["acme", "viewer"],
  other: ["acme", "viewer"],
  rita: ["acme", "operator"],
  adam: ["acme", "admin"],
  vera: ["acme", "viewer"],
  foreign: ["umbrella", "admin"],
};

/** Echoes need a ticket: without one they are blocked, or reviewed where they ask for that. */
export const ticketRules = `rules:
  - id: open.ticket
    title: Echoes need a ticket
    decision: block
    match: { phase: input, tool: echo }
    when: "!has(args.review) && !has(args.free)"
    require_ticket: true
    message: echoes change things
  - id: open.reviewed
    title: Some echoes are reviewed
    decision: review
    match: { phase: input, tool: echo }
    when: has(args.review)
    require_ticket: true
    message: somebody has to look at it
  - id: open.never
    title: What no ticket lifts
    decision: block
    match: { phase: input, tool: echo }
    when: has(args.never)
    message: nobody may do that
`;

export interface Issued {
  readonly token: string;
  readonly ticket: TicketView;
}

export interface Reply<T> {
  readonly status: number;
  readonly text: string;
  readonly body: T & { readonly code?: string; readonly detail?: string };
}

export interface CallOptions {
  readonly person?: Person;
  readonly label?: string;
  readonly kind?: ClientKind;
  /** Where the token stands; in the header unless told. */
  readonly in?: "header" | "meta";
}

export interface TicketWorldOptions {
  /** What stands below `tickets`, as YAML flow. */
  readonly tickets?: string;
  readonly rules?: string;
  /** Further top-level keys. */
  readonly more?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A gateway whose `echo` needs a ticket, between official clients and an upstream with a log. */
export class TicketWorld {
  readonly upstream: Recorder;
  gateway: RunningGateway;
  readonly #options: TicketWorldOptions;
  readonly #keys: Readonly<Record<Person, string>>;

  private constructor(
    upstream: Recorder,
    keys: Readonly<Record<Person, string>>,
    options: TicketWorldOptions,
    gateway: RunningGateway,
  ) {
    this.upstream = upstream;
    this.#keys = keys;
    this.#options = options;
    this.gateway = gateway;
  }

  /** `folder`: to keep after a stop. */
  static async start(options: TicketWorldOptions = {}, folder?: string): Promise<TicketWorld> {
    const upstream = await startRecorder();
    const keys = Object.fromEntries(Object.keys(people).map((each) => [each, newKey()])) as Record<Person, string>;
    try {
      const gateway = await startGateway({
        ...settings(upstream, keys, options),
        ...(folder === undefined ? {} : { folder }),
      });
      return new TicketWorld(upstream, keys, options, gateway);
    } catch (error) {
      await upstream.stop();
      throw error;
    }
  }

  /** Starts the gateway again in its folder, after a stop or a kill. */
  async startAgain(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const { folder } = this.gateway;
    const options = { ...this.#options, env: { ...this.#options.env, ...env } };
    this.gateway = await startGateway({ ...settings(this.upstream, this.#keys, options), folder });
  }

  async stop(): Promise<void> {
    await this.gateway.stop().finally(() => this.upstream.stop());
  }

  get evidence(): EvidenceReader {
    return new EvidenceReader(this.gateway.adminUrl, this.#keys.rita);
  }

  key(person: Person): string {
    return this.#keys[person];
  }

  principal(person: Person): string {
    return principalId(people[person][0], hashOf(this.#keys[person]));
  }

  async ask<T>(person: Person, method: string, path: string, body?: object): Promise<Reply<T>> {
    const response = await fetch(`${this.gateway.adminUrl}/admin/v1/${path}`, {
      method,
      headers: {
        "x-api-key": this.#keys[person],
        ...(method === "GET" ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, text, body: JSON.parse(text) as Reply<T>["body"] };
  }

  /** An order for `agent` to echo, once unless `over` says otherwise. */
  order(over: JsonObject = {}): JsonObject {
    const scope = { tools: ["echo"], targets: ["recorder"], capabilities: ["execute"] };
    return { principal: this.principal("agent"), ...scope, ...over };
  }

  async issue(over: JsonObject = {}, by: Person = "rita"): Promise<Issued> {
    const { status, body, text } = await this.ask<Issued>(by, "POST", "tickets", this.order(over));
    if (status !== 200) throw new Error(`expected a ticket, got ${status}: ${text}`);
    return body;
  }

  async list(person: Person = "rita"): Promise<readonly TicketView[]> {
    return (await this.ask<{ items: readonly TicketView[] }>(person, "GET", "tickets")).body.items;
  }

  /** A client whose every request presents the token, where it is in the header. */
  connect(
    token: string | null,
    { person = "agent", label, kind = "v2 modern", in: place = "header" }: CallOptions = {},
  ): Promise<McpClient> {
    const headers = {
      "x-api-key": this.#keys[person],
      ...(label === undefined ? {} : { "x-gateway-session-id": label }),
      ...(token === null || place === "meta" ? {} : { "x-gateway-ticket": token }),
    };
    return connectClient(kind, { url: `${this.gateway.url}/mcp`, headers });
  }

  /** Calls `echo` with an official client. */
  async call(token: string | null, args: JsonObject = {}, options: CallOptions = {}): Promise<ToolResult> {
    const client: McpClient = await this.connect(token, options);
    try {
      const meta = options.in === "meta" ? { meta: { [ticketMetaKey]: token } } : {};
      return await client.callTool("echo", args, meta);
    } finally {
      await client.close();
    }
  }

  /** Why a call of `echo` was refused for want of a ticket; throws where it was not, or where it ran. */
  async refusal(token: string | null, args: JsonObject = {}, options: CallOptions = {}): Promise<string> {
    const before = await this.ran();
    const result = await this.call(token, args, options);
    const after = await this.ran();
    const [, reason] = /needs a capability ticket: ([a-z_ ]+)\)/.exec(textOf(result)) ?? [];
    if (reason === undefined || after !== before) {
      throw new Error(`expected a refusal, got \`${textOf(result)}\` and ${after - before} calls upstream`);
    }
    return reason;
  }

  /** How many calls reached the upstream: its own log is the witness. */
  async ran(): Promise<number> {
    return (await this.upstream.calls()).length;
  }

  /** What the decisions of the chain say of tickets. */
  async recorded(): Promise<readonly (PresentedTicket & { readonly use?: number; readonly of?: number })[]> {
    const records: readonly ActionRecord[] = await this.evidence.recordsOf();
    return records.flatMap(({ ticket }) => (ticket === undefined ? [] : [ticket as PresentedTicket]));
  }
}

export function textOf({ content }: ToolResult): string {
  return content.map(({ text = "" }) => text).join("");
}

function settings(
  upstream: Recorder,
  keys: Readonly<Record<Person, string>>,
  { tickets = "", rules = ticketRules, more = "", env = {} }: TicketWorldOptions,
): Parameters<typeof startGateway>[0] {
  const entries = Object.entries(people).map(
    ([person, [tenant, role]]) =>
      `  - { id: ${person}, tenant: ${tenant}, role: ${role}, key_hash: "${hashOf(keys[person as Person])}" }`,
  );
  const config = `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${entries.join("\n")}
upstreams: [{ name: recorder, transport: http, url: "${upstream.url}", protocol: legacy, connection: shared }]
policy: { packs: [{ path: packs/open }] }
sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }
tickets: { ${tickets} }
${more}
`;
  return { config, files: { ...allowEverything("packs/open"), "packs/open/rules/ticket.yaml": rules }, env };
}

function hashOf(key: string): string {
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}
