import { createHash, randomBytes } from "node:crypto";
import { type RunningGateway, startGateway } from "./gateway.ts";
import { allowEverything } from "./pack.ts";
import { type Recorder, startRecorder } from "./recorder.ts";
import { type HeaderList, send, type WireResponse } from "./wire.ts";

/** Who holds a key: all but `neighbour` are of one tenant, all but `operator` are viewers. */
export type Holder = "attacker" | "colleague" | "operator" | "neighbour";

const holders: Readonly<Record<Holder, readonly [tenant: string, role: string]>> = {
  attacker: ["acme", "viewer"],
  colleague: ["acme", "viewer"],
  operator: ["acme", "operator"],
  neighbour: ["other", "viewer"],
};

const rules = `rules:
  - id: open.review
    title: What asks for it is reviewed
    decision: review
    severity: low
    risk: 0
    match: { phase: input, tool: echo }
    when: has(args.please_review)
    message: asked for review
  - id: open.block
    title: What asks for it is blocked
    decision: block
    severity: low
    risk: 0
    match: { phase: input, tool: echo }
    when: has(args.please_block)
    message: asked to be blocked
`;

export interface ShareWorldOptions {
  /** How clients are connected to the upstream. */
  readonly connection: "session" | "shared";
  /** Further keys below `limits`, as YAML flow. */
  readonly limits?: string;
  /** Further lines below `policy`. */
  readonly policy?: string;
  /** Further top-level keys of `gateway.yaml`. */
  readonly more?: string;
}

/** What a client sends, and what it reads of the response. */
export interface Called {
  readonly status: number;
  readonly session: string | undefined;
  readonly result?: { readonly isError?: boolean; readonly content?: readonly { readonly text: string }[] };
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
}

/** A gateway in production configuration for several keys, before an upstream that keeps a log. */
export class ShareWorld {
  readonly gateway: RunningGateway;
  readonly upstream: Recorder;
  readonly #keys: Readonly<Record<Holder, string>>;

  private constructor(gateway: RunningGateway, upstream: Recorder, keys: Readonly<Record<Holder, string>>) {
    this.gateway = gateway;
    this.upstream = upstream;
    this.#keys = keys;
  }

  static async start({ connection, limits = "", policy = "", more = "" }: ShareWorldOptions): Promise<ShareWorld> {
    const names = Object.keys(holders) as Holder[];
    const keys = Object.fromEntries(names.map((name) => [name, newKey()])) as Record<Holder, string>;
    const upstream = await startRecorder();
    const entries = names.map((name) => {
      const [tenant, role] = holders[name];
      const hash = createHash("sha256").update(keys[name]).digest("hex");
      return `  - { id: ${name}, tenant: ${tenant}, role: ${role}, key_hash: "sha256:${hash}" }`;
    });
    const config = `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys:
${entries.join("\n")}
upstreams: [{ name: recorder, transport: http, url: "${upstream.url}", protocol: legacy, connection: ${connection} }]
policy:
  packs: [{ path: packs/open }]
  ${policy}
log: { level: warn }
limits: { ${limits} }
${more}
`;
    const files = { ...allowEverything("packs/open"), "packs/open/rules/asked.yaml": rules };
    const gateway = await startGateway({ config, files, limitsShares: true, ownProcess: true }).catch(
      async (cause: unknown) => {
        await upstream.stop();
        throw cause;
      },
    );
    return new ShareWorld(gateway, upstream, keys);
  }

  key(holder: Holder): string {
    return this.#keys[holder];
  }

  /** POSTs one request to `/mcp`. */
  ask(holder: Holder, method: string, params: object, headers: HeaderList = []): Promise<Called> {
    return this.post(holder, JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }), headers);
  }

  /** POSTs any body to `/mcp`. */
  async post(holder: Holder, body: string, headers: HeaderList = []): Promise<Called> {
    const answer = await send(this.gateway.url, {
      method: "POST",
      target: "/mcp",
      headers: [["x-api-key", this.key(holder)], ["content-type", "application/json"], ...headers],
      body,
    });
    return { status: answer.status, session: answer.headers.get("mcp-session-id"), ...JSON.parse(answer.body) };
  }

  initialize(holder: Holder): Promise<Called> {
    const clientInfo = { name: "test", version: "1" };
    return this.ask(holder, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  }

  /** Calls `echo`; in a session where one is given. */
  call(holder: Holder, args: object, session?: string, headers: HeaderList = []): Promise<Called> {
    const all: HeaderList = session === undefined ? headers : [...headers, ["mcp-session-id", session]];
    return this.ask(holder, "tools/call", { name: "echo", arguments: args }, all);
  }

  /** Requests the admin port. */
  admin(holder: Holder, method: "GET" | "POST", target: string): Promise<WireResponse> {
    const headers: HeaderList = [["x-api-key", this.key(holder)]];
    const content: HeaderList = [["content-type", "application/json"]];
    return send(this.gateway.adminUrl, {
      method,
      target,
      ...(method === "GET" ? { headers } : { headers: [...headers, ...content], body: "{}" }),
    });
  }

  /** The number of requests with this method that reached the upstream. */
  async received(method: string): Promise<number> {
    return (await this.upstream.requests()).filter(({ body }) => body.includes(`"method":"${method}"`)).length;
  }

  async stop(): Promise<void> {
    await this.gateway.stop().finally(() => this.upstream.stop());
  }
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}
