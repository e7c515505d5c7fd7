import { canonicalJson, contentDigest, sha256Hex } from "../../core/action/canonical-json.ts";
import type { Json } from "../../core/action/json.ts";
import { SigningKey } from "../../core/action/signing-key.ts";
import {
  type BundleContent,
  bundleLines,
  type ShownField,
  type ShownFields,
  sealBundle,
} from "../../core/evidence/bundle/build.ts";
import { genesisDetail, rotationDetail } from "../../core/evidence/key/key-history.ts";
import { fieldCommitment, fieldsDigest } from "../../core/evidence/private/private-field.ts";
import { digestState } from "../../core/evidence/state/chain-state.ts";
import type { ShownState } from "../../core/evidence/state/state-store.ts";
import { checkpointSigner, signCheckpoint } from "../../core/evidence/tree/checkpoint.ts";
import { consistencyPath, inclusionPath, type LeafRange, leafHash, rootOf } from "../../core/evidence/tree/merkle.ts";
import { stateOf } from "./state-world.ts";

/** A record before it has a place; what a forger may change. */
export interface Draft {
  [member: string]: Json;
}

/** A record in its place. */
export interface Placed {
  readonly record: Draft;
  readonly text: string;
  readonly hash: string;
}

/** Drafts of a chain, and what a forger may do to a record just before it is sealed. */
export interface ChainPlan {
  readonly drafts: readonly Draft[];
  readonly edit?: (record: Draft, seq: number) => void;
}

export const tenant = "acme";
export const chainId = "Y2hhaW4tb2YtYWNtZS0x";
export const session: string = `session-v1-${"a".repeat(64)}`;
export const otherSession: string = `session-v1-${"b".repeat(64)}`;
export const principal = "principal-v1-1";
export const noHash: string = "0".repeat(64);
export const createdAt = "2025-03-01T10:00:00.000Z";

export const keys: Readonly<Record<"first" | "second" | "attacker", SigningKey>> = {
  first: SigningKey.fromSeed(Buffer.alloc(32, 1)),
  second: SigningKey.fromSeed(Buffer.alloc(32, 2)),
  attacker: SigningKey.fromSeed(Buffer.alloc(32, 66)),
};

/** How much a witness had seen before the export. */
export const witnessedSize = 10;

const policy = {
  digest: contentDigest("baseline"),
  duration_us: 12,
  kind: "pack",
  name: "baseline",
  signer: null,
  verdict: "allow",
  version: "1.0.0",
};

/** An event record. */
export function event(kind: string, detail: Json): Draft {
  return { kind, detail };
}

/** A decision about the action named `name`, with its arguments as disclosed fields; with facts for a name like `fact-1`. */
export function decision(name: string, verdict: "allow" | "review" | "block", changed: Draft = {}): Draft {
  return {
    ...step(name),
    kind: "decision",
    effect: verdict === "allow" ? "dispatched" : "not_dispatched",
    evaluation: {
      by_default: false,
      decision: verdict,
      duration_us: 31,
      errors: [],
      id: `evaluation-${name}`,
      policies: [{ ...policy, verdict }],
      risk: 20,
      rules: [`baseline.${verdict}`],
      shadow: [],
    },
    ...changed,
  };
}

/** What came of the action named `name`. */
export function outcome(name: string, effect: "success" | "error" | "unknown", changed: Draft = {}): Draft {
  const before = step(name);
  const digest = fieldsDigest(outputFields(name).map(({ commitment }) => commitment));
  const action = effect === "unknown" ? before.action : { ...(before.action as Draft), output_digest: digest };
  return { ...before, action: action as Json, kind: "outcome", effect, ...changed };
}

function step(name: string): Draft {
  return {
    action: {
      arguments_digest: fieldsDigest(argumentFields(name).map(({ commitment }) => commitment)),
      capability: "write",
      ...(hasFacts(name) ? { facts: { digest: digestOf(factFields(name)), effect: "delete" } } : {}),
      fingerprint: contentDigest(`fingerprint of ${name}`),
      id: `action-${name}`,
      phase: "input",
      protocol: "mcp",
      target: "files",
      task: null,
      tool: "write_file",
    },
    client: { address: "127.0.0.1", name: "agent", version: "1" },
    principal: { id: principal, key_id: "ci", role: "operator" },
    session: { id: name.startsWith("other") ? otherSession : session, transport: "http" },
  };
}

const hasFacts = (name: string): boolean => name.startsWith("fact-");
const digestOf = (shown: readonly ShownField[]): string => fieldsDigest(shown.map(({ commitment }) => commitment));
const fingerprintOf = (name: string): string => contentDigest(`fingerprint of ${name}`);

/** What a decision says of the approval `apr_1`, given for the action named `name`. */
export const approvalOf = (name: string, changed: Draft = {}): Draft => ({
  fingerprint: fingerprintOf(name),
  id: "apr_1",
  reviewer: "principal-v1-2",
  state: "consumed",
  ...changed,
});

/** A decision that was held and dispatched on an approval. */
export function approved(name: string, approval: Draft = approvalOf(name)): Draft {
  return decision(name, "review", { effect: "dispatched", approval });
}

/** What happened to the approval `apr_1`, bound to the action named `name`. */
export function approvalEvent(happened: string, name: string, changed: Draft = {}): Draft {
  return event("approval", { event: happened, fingerprint: fingerprintOf(name), id: "apr_1", session, ...changed });
}

/** What the approval of a task is bound to beside the task's fingerprint. */
export const taskOf = { capability: "write", protocol: "mcp", target: "files", task: null, tool: "write_file" };

/** A session with all that can happen to an action, in a chain with another session and a change of keys. */
export function goodDrafts(): Draft[] {
  return [
    event("genesis", genesisDetail(keys.first.public)),
    event("configuration", { event: "started", policies: [] }),
    event("session", { session, principal: "principal-v1-1" }),
    decision("a", "allow"),
    outcome("a", "success"),
    decision("other-1", "allow"),
    outcome("other-1", "success"),
    decision("b", "block"),
    decision("c", "review", { approval: approvalOf("d", { reviewer: null, state: "pending" }) }),
    approvalEvent("endorsed", "d", { reviewer: "principal-v1-3", comment: "looks <b>fine</b>" }),
    approvalEvent("approved", "d", { reviewer: "principal-v1-2", scope: "exact" }),
    approved("d"),
    outcome("d", "error"),
    event("key", { rotation: true }),
    decision("e", "allow"),
    outcome("e", "unknown", { reason: "UPSTREAM_TIMEOUT" }),
    decision("other-2", "block"),
  ];
}

/** Places drafts one after another: numbers, links, times, and the session's own index. */
export function placeChain({ drafts, edit }: ChainPlan): Placed[] {
  const placed: Placed[] = [];
  const sessions = new Map<string, { index: number; hash: string }>();
  for (const [seq, draft] of drafts.entries()) {
    const record = frame(draft, seq, placed.at(-1)?.hash ?? noHash);
    const own = record.session as Draft | undefined;
    const id = String(own?.id);
    if (own !== undefined) {
      const end = sessions.get(id) ?? { index: -1, hash: noHash };
      record.session = { index: end.index + 1, prev_hash: end.hash, ...own };
    }
    if (record.kind === "key") record.detail = rotation(record);
    edit?.(record, seq);
    const text = canonicalJson(record);
    const hash = sha256Hex(text);
    if (own !== undefined) sessions.set(id, { index: (record.session as { index: number }).index, hash });
    placed.push({ record, text, hash });
  }
  return placed;
}

function frame(draft: Draft, seq: number, prevHash: string): Draft {
  return {
    chain: chainId,
    config_digest: contentDigest("config"),
    id: `01958000-0000-7000-8000-${String(seq).padStart(12, "0")}`,
    prev_hash: prevHash,
    salt: Buffer.alloc(16, seq).toString("base64url"),
    schema: "evidence-record-v1",
    seq,
    tenant,
    time: new Date(Date.parse("2025-03-01T09:00:00.000Z") + seq * 1000).toISOString(),
    writer: { epoch: 1, id: "gateway-1" },
    ...structuredClone(draft),
  };
}

function rotation(record: Draft): Json {
  if ((record.detail as Draft).rotation !== true) return record.detail as Json;
  const place = { chain: chainId, seq: Number(record.seq), prevHash: String(record.prev_hash) };
  return rotationDetail(place, keys.first, keys.second);
}

/** The fields of an action's arguments and of its output, in the order of their commitments. */
export function argumentFields(name: string): ShownField[] {
  return fields(name, { path: `/srv/${name}.md`, content: "héllo 😀", mode: 420, ratio: 0.1, big: 1e21, "": null });
}

export function outputFields(name: string): ShownField[] {
  return fields(`${name}-out`, { ok: true, items: [1, 2.5, -0.000001], text: 'a "quoted"\nline' });
}

/** The fields of an action's facts. */
export function factFields(name: string): ShownField[] {
  return fields(`${name}-facts`, { hosts: ["db.example"], more: false, paths: ["/srv/héllo"], sql: { parsed: true } });
}

function fields(name: string, members: Readonly<Record<string, Json>>): ShownField[] {
  const shown = Object.entries(members).map(([member, value], at) => {
    const field = { name: member, salt: Buffer.from(`${name}-${at}-salt-16-bytes`).toString("base64url"), value };
    return { commitment: fieldCommitment(field), ...field };
  });
  return shown.sort((a, b) => (a.commitment < b.commitment ? -1 : 1));
}

/** The note over the first `size` records, under the keys of that size. A gateway of an earlier day states no `state`. */
export function checkpointOf(
  chain: readonly Placed[],
  size: number,
  signers: readonly SigningKey[] = signersAt(chain, size),
  state: string | null = digestState(shownAt(chain, size).state),
): string {
  const last = chain[size - 1] as Placed;
  const time = String(last.record.time);
  const checkpoint = {
    chain: chainId,
    size,
    root: rootAt(chain, 0, size),
    head: last.hash,
    time,
    state: state ?? undefined,
  };
  return signCheckpoint(
    checkpoint,
    signers.map((key) => checkpointSigner(chainId, key)),
  );
}

/** What the chain's state says of the session and its principal. */
export function shownAt(chain: readonly Placed[], size: number): ShownState {
  return stateOf(chain, size, session, principal);
}

/** The chain's keys at a size: the first up to the hand-over, the second from there on. */
function signersAt(chain: readonly Placed[], size: number): SigningKey[] {
  const handOver = handOverSize(chain);
  if (handOver === undefined || size < handOver) return [keys.first];
  return size === handOver ? [keys.first, keys.second] : [keys.second];
}

function handOverSize(chain: readonly Placed[]): number | undefined {
  const at = chain.findIndex(({ record }) => record.kind === "key");
  return at === -1 ? undefined : at + 1;
}

function rootAt(chain: readonly Placed[], start: number, end: number): Buffer {
  return rootOf(chain.slice(start, end).map(({ hash }) => leafHash(hash)));
}

function hashesOf(chain: readonly Placed[], path: readonly LeafRange[]): string[] {
  return path.map(({ start, end }) => rootAt(chain, start, end).toString("hex"));
}

export function inclusionOf(chain: readonly Placed[], seq: number, size: number): string[] {
  return hashesOf(chain, inclusionPath(seq, size));
}

/** What an honest export of the session says of a chain. */
export function contentOf(chain: readonly Placed[]): BundleContent {
  const size = chain.length;
  const own = chain.filter(({ record }) => {
    const action = record.session as Draft | undefined;
    return action === undefined || action.id === session;
  });
  const seqs = [...new Set([...own.map(({ record }) => Number(record.seq)), size - 1])];
  return {
    tenant,
    session,
    created: createdAt,
    texts: own.map(({ text }) => text),
    states: [shownAt(chain, size), shownAt(chain, witnessedSize)],
    checkpoint: checkpointOf(chain, size),
    proofs: new Map(seqs.map((seq) => [seq, inclusionOf(chain, seq, size)])),
    keyId: (signersAt(chain, size).at(-1) as SigningKey).id,
    fields: new Map(own.flatMap(({ record }) => fieldsOf(record))),
    witnessed: {
      note: checkpointOf(chain, witnessedSize),
      proof: hashesOf(chain, consistencyPath(witnessedSize, size)),
    },
  };
}

/** The same as a gateway exported it that signed no states. */
export function formerContentOf(chain: readonly Placed[]): BundleContent {
  const { states: _, ...content } = contentOf(chain);
  const size = chain.length;
  return { ...content, checkpoint: checkpointOf(chain, size, signersAt(chain, size), null) };
}

/** One argument of every action is withheld. */
function fieldsOf(record: Draft): [number, ShownFields][] {
  const action = record.action as Draft | undefined;
  if (action === undefined) return [];
  const name = String(action.id).replace("action-", "");
  const args = argumentFields(name).map((field, at) => (at === 0 ? { commitment: field.commitment } : field));
  const shown: ShownFields = {
    ...(record.kind === "decision" ? { arguments: args } : {}),
    ...(record.kind === "decision" && hasFacts(name) ? { facts: factFields(name).with(0, withheldFact(name)) } : {}),
    ...(action.output_digest === undefined ? {} : { output: outputFields(name) }),
  };
  return Object.keys(shown).length === 0 ? [] : [[Number(record.seq), shown]];
}

function withheldFact(name: string): ShownField {
  return { commitment: (factFields(name)[0] as ShownField).commitment };
}

/** What the witness kept of a chain: a note of each size, as its file holds them. */
export function witnessOf(chain: readonly Placed[], sizes: readonly number[]): string {
  return sizes.map((size) => `# 2025-03-01T09:30:00.000Z\n${checkpointOf(chain, size)}`).join("");
}

/** The same as a gateway published it that signed no states. */
export function formerWitnessOf(chain: readonly Placed[], sizes: readonly number[]): string {
  return sizes.map((size) => checkpointOf(chain, size, signersAt(chain, size), null)).join("");
}

/** The bundle of a chain as an honest gateway would export it. */
export function bundleOf(chain: readonly Placed[], content: BundleContent = contentOf(chain)): Buffer {
  return sealBundle([...bundleLines(content)], signersAt(chain, chain.length).at(-1) as SigningKey);
}
