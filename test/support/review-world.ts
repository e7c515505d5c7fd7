import { createHash, randomBytes } from "node:crypto";
import type { Approval } from "../../core/action/approval.ts";
import type { JsonObject } from "../../core/action/json.ts";
import { principalId } from "../../core/action/principal.ts";
import type { Role } from "../../core/action/role.ts";
import type { ApprovalPage } from "../../core/approval/history.ts";
import type { ApprovalView } from "../../core/approval/view.ts";
import { recordRange } from "../../core/evidence/record/key-space.ts";
import type { EventRecord } from "../../core/evidence/record/record.ts";
import { openStore } from "../../core/store/open.ts";
import { Agent, type Answer } from "./agent.ts";
import { type RunningGateway, startGateway } from "./gateway.ts";
import { allowEverything } from "./pack.ts";
import { type Recorder, startRecorder } from "./recorder.ts";

/** Who holds a key: `agent` asks and is an operator, the others answer; `foreign` is an admin of another tenant. */
export const people = ["agent", "rita", "olaf", "adam", "vera", "foreign"] as const;
export type Person = (typeof people)[number];

const roleOf: Readonly<Record<Person, Role>> = {
  agent: "operator",
  rita: "operator",
  olaf: "operator",
  adam: "admin",
  vera: "viewer",
  foreign: "admin",
};

/** What the admin port answered. */
export interface Reply<T> {
  readonly status: number;
  readonly text: string;
  readonly body: T;
}

export type Problem = { readonly code?: string; readonly detail?: string; readonly data?: object };

/** Someone with a key before the admin port. */
export class Reviewer {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(adminUrl: string, key: string | undefined) {
    this.#url = `${adminUrl}/admin/v1`;
    this.#headers = key === undefined ? {} : { "x-api-key": key };
  }

  list(query = ""): Promise<Reply<ApprovalPage & Problem>> {
    return this.ask("GET", `/approvals${query}`);
  }

  history(query = ""): Promise<Reply<ApprovalPage & Problem>> {
    return this.ask("GET", `/approvals/history${query}`);
  }

  show(id: string): Promise<Reply<ApprovalView & Problem>> {
    return this.ask("GET", `/approvals/${id}`);
  }

  approve(id: string, body?: object): Promise<Reply<{ approval: Approval } & Problem>> {
    return this.ask("POST", `/approvals/${id}/approve`, body);
  }

  deny(id: string, body?: object): Promise<Reply<{ approval: Approval } & Problem>> {
    return this.ask("POST", `/approvals/${id}/deny`, body);
  }

  openBreakGlass(): Promise<Reply<ApprovalPage & Problem>> {
    return this.ask("GET", "/break-glass");
  }

  closeBreakGlass(id: string, postMortem: string): Promise<Reply<{ approval: Approval } & Problem>> {
    return this.ask("POST", `/break-glass/${id}/close`, { post_mortem: postMortem });
  }

  async ask<T>(method: string, path: string, body?: object | string): Promise<Reply<T>> {
    const content = method === "GET" ? {} : { "content-type": "application/json" };
    const text = typeof body === "object" ? JSON.stringify(body) : body;
    const request = {
      method,
      headers: { ...this.#headers, ...content },
      ...(text === undefined ? {} : { body: text }),
    };
    const response = await fetch(this.#url + path, request);
    const answer = await response.text();
    return { status: response.status, text: answer, body: JSON.parse(answer) as T };
  }
}

/** Every way in which a text is not what it looks like, in names and in values. */
export const hostileArguments: JsonObject = {
  "a\u202eb": "\u001b[2J\u001b[31mred\r\n\u2028next",
  zero: "ad\u200bmin\ufeff\u00ad",
  letters: "p\u0430ypal.com",
  tags: "\u{e0041}\u{e0042}",
  long: `${"x".repeat(200_000)}END`,
  nested: { "\u2066/\u2069": [["\u009b31m"], null, true, -5] },
};

const rules = `rules:
  - id: open.review
    title: Echoes are reviewed
    decision: review
    severity: high
    risk: 50
    match: { phase: input, tool: echo }
    message: somebody has to look at it
  - id: open.quorum
    title: Deep calls are reviewed by two
    decision: review
    severity: critical
    risk: 90
    match: { phase: input, tool: deep }
    approvals: { required: 2 }
    message: two have to look at it
`;

/** A gateway that holds every call of `echo` for one reviewer and of `deep` for two, and an upstream with a log. */
export class ReviewWorld {
  readonly upstream: Recorder;
  readonly #keys: Readonly<Record<Person, string>>;
  readonly #approvals: string;
  readonly #agents: Agent[] = [];
  gateway: RunningGateway;

  private constructor(
    upstream: Recorder,
    keys: Readonly<Record<Person, string>>,
    approvals: string,
    gateway: RunningGateway,
  ) {
    this.upstream = upstream;
    this.#keys = keys;
    this.#approvals = approvals;
    this.gateway = gateway;
  }

  /**
   * `approvals`: what stands below that key, as YAML flow: `allow_self_review: true`. `folder`: to keep after a stop; whoever
   * gives one reads what the gateway left in it.
   */
  static async start(approvals = "", folder?: string): Promise<ReviewWorld> {
    const upstream = await startRecorder();
    const keys = Object.fromEntries(people.map((each) => [each, newKey()])) as Record<Person, string>;
    try {
      const gateway = await startGateway({
        ...optionsFor(upstream, keys, approvals),
        ...(folder === undefined ? {} : { folder, alone: true }),
      });
      return new ReviewWorld(upstream, keys, approvals, gateway);
    } catch (error) {
      await upstream.stop();
      throw error;
    }
  }

  /** Starts the gateway again after a stop, in its folder and on the same admin port. */
  async startAgain(): Promise<void> {
    const { folder, adminUrl } = this.gateway;
    const port = Number(new URL(adminUrl).port);
    this.gateway = await startGateway({
      ...optionsFor(this.upstream, this.#keys, this.#approvals, port),
      folder,
      alone: true,
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.hangUp()));
    await this.gateway.stop().finally(() => this.upstream.stop());
  }

  as(person: Person): Reviewer {
    return new Reviewer(this.gateway.adminUrl, this.#keys[person]);
  }

  key(person: Person): string {
    return this.#keys[person];
  }

  principal(person: Person): string {
    return principalId(person === "foreign" ? "other" : "acme", hashOf(this.#keys[person]));
  }

  /** Calls a tool of the upstream, as `agent` unless told. */
  call(tool: "echo" | "deep", args: object, person: Person = "agent"): Promise<Answer> {
    const agent = new Agent(this.gateway.url, this.#keys[person]);
    this.#agents.push(agent);
    return agent.call(tool, args);
  }

  /** Calls a tool, and returns the id of the approval that the call waits for. */
  async hold(args: object, tool: "echo" | "deep" = "echo", person: Person = "agent"): Promise<string> {
    const { result } = await this.call(tool, args, person);
    const [, id] = /Approval (apr_[0-9a-f]{32}) is pending/.exec(result?.content?.[0]?.text ?? "") ?? [];
    if (id === undefined) throw new Error(`expected a call held for review, got \`${JSON.stringify(result)}\``);
    return id;
  }

  /** How many calls reached the upstream. */
  async ran(): Promise<number> {
    return (await this.upstream.calls()).length;
  }
}

/** The chain of a tenant, `acme` unless told, in the data folder of a gateway that was stopped. */
export async function recordsIn(folder: string, tenant = "acme"): Promise<readonly EventRecord[]> {
  const store = await openStore({ dir: folder, enabled: true });
  const texts = await store.values(recordRange(tenant)).all();
  await store.close();
  return texts.map((text) => JSON.parse(String(text)));
}

function optionsFor(
  upstream: Recorder,
  keys: Readonly<Record<Person, string>>,
  approvals: string,
  adminPort = 0,
): { config: string; files: Readonly<Record<string, string>> } {
  const entries = people.map((person) => {
    const tenant = person === "foreign" ? "other" : "acme";
    return `  - { id: ${person}, tenant: ${tenant}, role: ${roleOf[person]}, key_hash: "${hashOf(keys[person])}" }`;
  });
  const config = `
listen: { gateway_port: 0, admin_port: ${adminPort}, metrics_port: 0 }
keys:
${entries.join("\n")}
upstreams: [{ name: recorder, transport: http, url: "${upstream.url}", protocol: legacy, connection: shared }]
policy: { packs: [{ path: packs/open }] }
sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }
${approvals === "" ? "" : `approvals: { ${approvals} }`}
`;
  return { config, files: { ...allowEverything("packs/open"), "packs/open/rules/review.yaml": rules } };
}

function hashOf(key: string): string {
  return `sha256:${createHash("sha256").update(key).digest("hex")}`;
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}
