import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { JWTPayload } from "jose";
import { entriesIn } from "../../support/canary.ts";
import { filesWith } from "../../support/disk-search.ts";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { freePort } from "../../support/free-port.ts";
import { type RunningGateway, startGateway } from "../../support/gateway.ts";
import { allowEverything } from "../../support/pack.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { scrapeText } from "../../support/scrape.ts";
import {
  type IssuerKey,
  type KeyServer,
  newIssuerKey,
  publishedKey,
  signToken,
  startKeyServer,
} from "../../support/token-issuer.ts";
import { type HeaderList, send, type WireResponse } from "../../support/wire.ts";

export type Holder = "agent" | "operator" | "foreign";

const roleOf = { agent: "viewer", operator: "admin", foreign: "admin" } as const;

/** The resource that tokens are for, unless a world says its own. */
export const audience = "https://gateway.example/mcp";

interface OauthWorldOptions {
  /** Further members of `oauth`, beside `issuer` and `audience`; left out: the tenant `acme`. */
  readonly oauth?: string;
  readonly audience?: string;
  /** The gateway port; left out: a free one. */
  readonly port?: number;
  readonly issuer?: string;
  /** True: a gateway that takes keys only. */
  readonly withoutOauth?: boolean;
  /** Further keys of the configuration. */
  readonly more?: string;
  readonly limitsShares?: boolean;
}

/** A call of the upstream's tool `echo`, refused. */
export interface RefusedCall {
  readonly status: number;
  readonly challenge: string | undefined;
  readonly message: string;
  readonly code: string;
  readonly reason: string | undefined;
}

/** A gateway that accepts the tokens of an issuer, whose keys the test holds, before an upstream with a log of its own. */
export class OauthWorld {
  readonly keys: Readonly<Record<Holder, string>>;
  readonly key: IssuerKey = newIssuerKey("first");
  readonly server: KeyServer;
  readonly upstream: Recorder;
  readonly #folder: string;
  readonly #canaries: string[] = [];
  #gateway: RunningGateway | undefined;

  private constructor(folder: string, server: KeyServer, upstream: Recorder) {
    this.#folder = folder;
    this.server = server;
    this.upstream = upstream;
    this.keys = { agent: newKey(), operator: newKey(), foreign: newKey() };
  }

  static async start(options: OauthWorldOptions = {}): Promise<OauthWorld> {
    const folder = await mkdtemp(join(tmpdir(), "gateway-oauth-"));
    const world = new OauthWorld(folder, await startKeyServer(), await startRecorder());
    world.server.publish([await publishedKey(world.key)]);
    await world.#open(options);
    return world;
  }

  get gateway(): RunningGateway {
    if (this.#gateway === undefined) throw new Error("expected a running gateway");
    return this.#gateway;
  }

  /** The claims of a good token. */
  get claims(): JWTPayload {
    const now = Math.floor(Date.now() / 1_000);
    return { iss: this.server.issuer, aud: audience, sub: "agent-7", iat: now, exp: now + 600 };
  }

  /** A token like a good one but for these claims, this header and this key. Each is another one: its `jti` is a canary. */
  token(
    claims: JWTPayload = {},
    header: Readonly<Record<string, unknown>> = {},
    key: IssuerKey = this.key,
  ): Promise<string> {
    return signToken(key, { ...this.claims, jti: this.canary(), ...claims }, header);
  }

  /** A text that must turn up nowhere: see `expectNoTrace`. */
  readonly canary = (): string => {
    const canary = `canary-${randomBytes(12).toString("hex")}`;
    this.#canaries.push(canary);
    return canary;
  };

  /** Takes the parts of a token for canaries. */
  mustNotTurnUp(token: string): void {
    this.#canaries.push(...token.split(".").filter((part) => part.length >= 16));
  }

  /** Calls the upstream's tool `echo` with these headers. */
  call(headers: HeaderList, args: object = {}, target: string = "/mcp"): Promise<WireResponse> {
    const params = { name: "echo", arguments: args };
    return send(this.gateway.url, {
      method: "POST",
      target,
      headers: [...headers, ["content-type", "application/json"]],
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
  }

  /** Calls it with a token, and returns the id of the approval, `result` or the code of the error. */
  async callWith(token: string, args: object = {}): Promise<string> {
    const { body } = await this.call(bearer(token), args);
    const { result, error } = JSON.parse(body);
    if (result?.isError === true) return String(result.content[0].text);
    return result === undefined ? `${error.data.code} ${error.data.reason ?? ""}`.trim() : "result";
  }

  /** Calls it with a token that must be refused with 401, before anything is judged, recorded or dispatched. */
  async refuse(token: string): Promise<RefusedCall> {
    this.mustNotTurnUp(token);
    const before = await this.effects();
    const response = await this.call(bearer(token));
    expect(await this.effects()).to.deep.equal(before);
    expect(response.status).to.equal(401);
    const { error } = JSON.parse(response.body);
    const challenge = response.headers.get("www-authenticate");
    const text = `${challenge} ${response.body}`;
    for (const part of token.split(".")) if (part.length >= 16) expect(text).not.to.contain(part);
    return { status: 401, challenge, message: error.message, code: error.data.code, reason: error.data.reason };
  }

  /** Calls in the upstream's own log, and records of actions in the chains of both tenants. */
  async effects(): Promise<{ readonly calls: number; readonly records: number }> {
    const chains = await Promise.all(
      (["operator", "foreign"] as const).map((holder) => this.evidence(holder).sessions()),
    );
    const records = chains.flat().reduce((sum, session) => sum + session.records, 0);
    return { calls: (await this.upstream.calls()).length, records };
  }

  evidence(holder: Holder): EvidenceReader {
    return new EvidenceReader(this.gateway.adminUrl, this.keys[holder]);
  }

  /** Sends a request to the admin port. */
  async order(holder: Holder, path: string, body: object): Promise<{ readonly status: number; readonly body: string }> {
    const response = await fetch(`${this.gateway.adminUrl}/admin/v1/${path}`, {
      method: "POST",
      headers: { "x-api-key": this.keys[holder], "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.text() };
  }

  /** Stops the gateway, and expects no canary in its log, its metrics, its files or its store. */
  async expectNoTrace(): Promise<void> {
    const metrics = await scrapeText(this.gateway.metricsUrl);
    await this.gateway.stop();
    const log = this.gateway.stdout() + this.gateway.stderr();
    this.#gateway = undefined;
    expect(log).to.contain("request_refused");
    const store = await entriesIn(join(this.#folder, "data"));
    expect(this.#canaries).not.to.deep.equal([]);
    for (const canary of this.#canaries) {
      for (const text of [metrics, log, store]) expect(text).not.to.contain(canary);
      expect(await filesWith(this.#folder, canary)).to.deep.equal([]);
    }
  }

  async stop(): Promise<void> {
    await this.#gateway?.stop();
    await this.upstream.stop();
    await this.server.close();
    await rm(this.#folder, { recursive: true });
  }

  async #open(options: OauthWorldOptions): Promise<void> {
    const { port = await freePort(), oauth = "tenant: acme", issuer = this.server.issuer, more = "" } = options;
    const resource = options.audience ?? audience;
    const keys = (Object.keys(this.keys) as Holder[]).map((holder) => {
      const hash = createHash("sha256").update(this.keys[holder]).digest("hex");
      const tenant = holder === "foreign" ? "other" : "acme";
      return `  - { id: ${holder}, tenant: ${tenant}, role: ${roleOf[holder]}, key_hash: "sha256:${hash}" }`;
    });
    this.#gateway = await startGateway({
      folder: this.#folder,
      limitsShares: options.limitsShares ?? false,
      files: { ...allowEverything("packs/open"), "packs/open/rules/review.yaml": reviewRule },
      config: `
listen: { gateway_port: ${port}, admin_port: 0, metrics_port: 0 }
log: { level: debug }
keys:
${keys.join("\n")}
${options.withoutOauth === true ? "" : `oauth:\n  issuer: ${issuer}\n  audience: ${resource}\n${oauth.replace(/^/gm, "  ")}`}
upstreams:
  - { name: recorder, transport: http, url: "${this.upstream.url}", protocol: legacy, connection: shared }
policy: { packs: [{ path: packs/open }] }
${more}
`,
    });
  }
}

const reviewRule = `rules:
  - id: open.review
    title: What asks for it is reviewed
    decision: review
    severity: low
    risk: 10
    match: { phase: input, tool: echo }
    when: has(args.please_review)
    message: asked for review
`;

export function bearer(token: string): HeaderList {
  return [["authorization", `Bearer ${token}`]];
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}
