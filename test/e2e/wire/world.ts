import { createHash, randomBytes } from "node:crypto";
import { EvidenceReader } from "../../support/evidence-reader.ts";
import { type GatewayOptions, type RunningGateway, startGateway } from "../../support/gateway.ts";
import { allowEverything } from "../../support/pack.ts";
import { type Recorder, startRecorder } from "../../support/recorder.ts";
import { type HeaderList, send, type WireRequest, type WireResponse } from "../../support/wire.ts";

/** Who holds a key of the world; `foreign` is an admin of another tenant. */
export type KeyHolder = "admin" | "operator" | "viewer" | "foreign";

export const keys: Readonly<Record<KeyHolder, string>> = {
  admin: newKey(),
  operator: newKey(),
  viewer: newKey(),
  foreign: newKey(),
};

/** What the gateway itself presents to the upstream. */
export const upstreamSecret: string = `Bearer ${newKey()}`;

/** A gateway process with a key for each role, a pack that allows everything but `please_review`, and an upstream that keeps a log. */
export interface World {
  readonly gateway: RunningGateway;
  readonly upstream: Recorder;
  stop(): Promise<void>;
}

const openPack = "policy: { packs: [{ path: packs/open }] }";
const reviewRule = `rules:
  - id: open.review
    title: What asks for it is reviewed
    decision: review
    severity: low
    risk: 10
    match: { phase: input, tool: echo }
    when: has(args.please_review)
    message: asked for review
  - id: open.trial
    title: What asks for it would be blocked
    decision: block
    severity: low
    risk: 10
    mode: shadow
    match: { phase: input, tool: echo }
    when: has(args.on_trial)
    message: asked for a block
`;

/**
 * `more`: further top-level keys of `gateway.yaml`; `listen`: further lines below `listen`, indented; `policy`: that
 * key with its value, in place of the pack that allows everything; `options`: of the gateway.
 */
export async function openWorld(
  more: string = "",
  listen: string = "",
  policy: string = openPack,
  options: Pick<GatewayOptions, "limitsShares" | "ownProcess" | "folder" | "env"> = {},
): Promise<World> {
  const upstream = await startRecorder();
  try {
    const gateway = await startGateway({
      ...options,
      config: configFor(upstream.url, `${policy}\n${more}`, listen),
      files: { ...allowEverything("packs/open"), "packs/open/rules/review.yaml": reviewRule },
      env: { UPSTREAM_SECRET: upstreamSecret, ...options.env },
    });
    const stop = async (): Promise<void> => {
      await gateway.stop().finally(() => upstream.stop());
    };
    return { gateway, upstream, stop };
  } catch (error) {
    await upstream.stop();
    throw error;
  }
}

/** The three ports by the names of the route table. */
export function portsOf({ url, adminUrl, metricsUrl }: RunningGateway): Readonly<Record<string, string>> {
  return { gateway: url, admin: adminUrl, metrics: metricsUrl };
}

/** The headers of a JSON-RPC message from the holder of a key. */
export function messageHeaders(holder: KeyHolder = "operator"): HeaderList {
  return [
    ["x-api-key", keys[holder]],
    ["content-type", "application/json"],
  ];
}

/** POSTs `body` to `/mcp` with the operator's key; what `request` says goes before that. */
export function post(world: World, body: string | Uint8Array, request: WireRequest = {}): Promise<WireResponse> {
  return send(world.gateway.url, { method: "POST", target: "/mcp", headers: messageHeaders(), body, ...request });
}

/** The text of a `tools/call` of `echo`; `args` is JSON text, so that it can hold what no serialiser writes. */
export function echoCall(args: string = "{}", id: string = "1"): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":${args}}}`;
}

/** The id of an approval that waits for a reviewer; every call of this asks for another one. */
export async function holdCall(world: World, holder: KeyHolder = "operator"): Promise<string> {
  const args = JSON.stringify({ please_review: randomBytes(8).toString("hex") });
  const { body } = await post(world, echoCall(args), { headers: messageHeaders(holder) });
  const [, id] = /Approval (apr_[0-9a-f]{32}) is pending/.exec(body) ?? [];
  if (id === undefined) throw new Error(`expected a call held for review, got \`${body}\``);
  return id;
}

/** What a step left behind: calls in the upstream's own log, and records of actions in the tenant's chain. */
export interface Effects {
  readonly calls: number;
  readonly records: number;
}

export const nothing: Effects = { calls: 0, records: 0 };

/** What `step` leaves behind once it is over. */
export async function effectsOf(world: World, step: () => Promise<unknown>): Promise<Effects> {
  const before = await totals(world);
  await step();
  const after = await totals(world);
  return { calls: after.calls - before.calls, records: after.records - before.records };
}

async function totals(world: World): Promise<Effects> {
  const sessions = await new EvidenceReader(world.gateway.adminUrl, keys.operator).sessions();
  const calls = await world.upstream.calls();
  return { calls: calls.length, records: sessions.reduce((sum, { records }) => sum + records, 0) };
}

function newKey(): string {
  return `test-${randomBytes(32).toString("base64url")}`;
}

function keyEntry(holder: KeyHolder): string {
  const tenant = holder === "foreign" ? "other" : "acme";
  const role = holder === "foreign" ? "admin" : holder;
  const hash = createHash("sha256").update(keys[holder]).digest("hex");
  return `  - { id: ${holder}, tenant: ${tenant}, role: ${role}, key_hash: "sha256:${hash}" }`;
}

function configFor(upstreamUrl: string, more: string, listen: string): string {
  return `
listen:
  gateway_port: 0
  admin_port: 0
  metrics_port: 0${listen}
keys:
${(Object.keys(keys) as KeyHolder[]).map(keyEntry).join("\n")}
upstreams:
  - name: recorder
    transport: http
    url: ${upstreamUrl}
    headers_env: { authorization: UPSTREAM_SECRET }
    protocol: legacy
    connection: shared
${more}
`;
}
