import type { RecordedApprovalStates } from "../action/approval.ts";
import { sha256Hex } from "../action/canonical-json.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { ActionEnvelope, Pause } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { fingerprint, fingerprintInTurns } from "../action/fingerprint.ts";
import { isLarge, type JsonObject } from "../action/json.ts";
import { turnsOf } from "../store/pace.ts";
import { type ApprovalSummary, applyApproval, parseApprovalSummary } from "./chain/approval-summary.ts";
import type { ChainTable, EvidenceChain } from "./chain/chain-table.ts";
import { ChainWalk } from "./chain/chain-walk.ts";
import type { Mark } from "./chain/high-water.ts";
import { parseSessionSummary, type SessionSummary } from "./chain/session-record.ts";
import type { WrappingKey } from "./key/wrapping-key.ts";
import { openHeld, releaseHeld } from "./private/held-action.ts";
import { type DisclosurePlace, discloseRecord } from "./private/private-field.ts";
import {
  approvalSummaryKey,
  type EvidenceStore,
  recordKey,
  recordRange,
  sessionKey,
  sessionRecordRange,
} from "./record/key-space.ts";
import { isChainFault } from "./record/reason.ts";
import type { ActionRecord } from "./record/record.ts";
import { isAction, readRecord } from "./record/record-text.ts";
import { readFault } from "./record/store-view.ts";

/** The fingerprints of an action that an approval is bound to, as keyed commitments. */
interface CommittedFingerprints {
  readonly exact: string;
  readonly task: string;
}

interface ApprovalEvidenceParts {
  readonly store: EvidenceStore;
  readonly chains: ChainTable;
  /** The last record of a tenant that is durable. */
  readonly markOf: (tenant: string) => Mark | undefined;
  readonly writable: () => boolean;
  readonly pause: Pause;
  readonly record: (tenant: string, detail: JsonObject, operations: readonly BatchOperation[]) => Promise<void>;
}

/** The evidence of approvals. The queue trusts nothing of its own that the chain does not confirm. */
export class ApprovalEvidence {
  readonly #parts: ApprovalEvidenceParts;

  constructor(parts: ApprovalEvidenceParts) {
    this.#parts = parts;
  }

  /** False from a failed write until a repair. */
  get writable(): boolean {
    return this.#parts.writable();
  }

  /** Records an event of an approval; `operations` commit with it, or not at all. Rejects with EVIDENCE_UNAVAILABLE. */
  record(tenant: string, detail: JsonObject, operations: readonly BatchOperation[]): Promise<void> {
    return this.#parts.record(tenant, detail, operations);
  }

  async fingerprints(action: ActionEnvelope): Promise<CommittedFingerprints> {
    const { chains, pause } = this.#parts;
    const { wrapping } = await chains.open(action.tenant);
    if (!isLarge(action.arguments)) {
      const exact = wrapping.commitFingerprint(fingerprint(action));
      return { exact, task: wrapping.commitFingerprint(fingerprint(action, "task")) };
    }
    const turns = turnsOf(() => pause(action));
    await turns.next();
    const exact = wrapping.commitFingerprint(await fingerprintInTurns(action, turns));
    await turns.next();
    const task = wrapping.commitFingerprint(await fingerprintInTurns(action, turns, "task"));
    await turns.next();
    return { exact, task };
  }

  /** The text of the action that the decision `seq` held; undefined where it is no longer kept. */
  async held(tenant: string, seq: number): Promise<string | undefined> {
    const { id, wrapping } = this.#parts.chains.get(tenant);
    return this.#read(() => openHeld(this.#parts.store, wrapping, { tenant, chain: id, seq }));
  }

  /** The arguments of the action that the decision `seq` is about; undefined where they are not kept whole. */
  async arguments(tenant: string, seq: number): Promise<JsonObject | undefined> {
    const { wrapping } = this.#parts.chains.get(tenant);
    return this.#read(() => readArguments(this.#parts.store, wrapping, { tenant, seq }));
  }

  /** A session and its last records, at most `maxRecords` of them; undefined for one that the tenant does not have. */
  async session(tenant: string, id: string, maxRecords: number): Promise<SessionTail | undefined> {
    this.#parts.chains.checkTrusted(tenant);
    return this.#read(() => readTail(this.#parts.store, tenant, id, maxRecords));
  }

  /** Returns the operation that deletes a held action. */
  release(tenant: string, seq: number): BatchOperation {
    return releaseHeld(tenant, seq);
  }

  /** Authenticates the text of an approval's entry with the key of the chain. */
  seal(tenant: string, text: string): string {
    return this.#parts.chains.get(tenant).wrapping.authenticate("approval-entry-v1", text);
  }

  /**
   * Reads the state of every approval that record `from` or a later one names. Reads all records, each linked to the
   * next, past the high-water mark; but none before the summary of approvals, where it is this chain's and its record is
   * there. A tenant whose chain is broken there is refused: EVIDENCE_UNAVAILABLE.
   */
  async readApprovals(tenant: string, from: number): Promise<RecordedApprovalStates> {
    const { chains, markOf, store } = this.#parts;
    const chain = chains.get(tenant);
    const mark = markOf(tenant);
    const summary = await readSummary(store, chain);
    const first = Math.min(Math.max(from, summary?.seq ?? 0), mark?.seq ?? 0);
    const byId = new Map(first === summary?.seq ? summary.states : []);
    const walk = new ChainWalk(tenant, chain.id, first);
    let latest = first === summary?.seq ? summary.latest : "";
    let isMarked = false;
    for await (const [key, text] of store.iterator({ ...recordRange(tenant), gte: recordKey(tenant, first) })) {
      const step = walk.accept(key, text);
      if (isChainFault(step)) throw this.#refuse(tenant, walk.head.seq + 1, step.fault);
      isMarked ||= step.record.seq === mark?.seq && step.hash === mark.head;
      if (step.record.time > latest) latest = step.record.time;
      applyApproval(byId, step.record);
    }
    if (!isMarked) throw this.#refuse(tenant, walk.head.seq + 1, "expected to pass the high-water mark");
    chain.approvals.restore(byId, latest);
    return { byId, latestMs: Date.parse(latest) };
  }

  #refuse(tenant: string, seq: number, fault: string): GatewayError {
    const reason = `chain of tenant \`${tenant}\` is broken at record ${seq}: ${fault}`;
    this.#parts.chains.refuse(tenant, reason);
    return new GatewayError("EVIDENCE_UNAVAILABLE", reason);
  }

  async #read<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      throw readFault(error);
    }
  }
}

/** The summary of a chain's approvals; undefined where there is none that its record confirms. */
async function readSummary(
  store: EvidenceStore,
  { tenant, wrapping }: EvidenceChain,
): Promise<ApprovalSummary | undefined> {
  const text = await store.get(approvalSummaryKey(tenant));
  const summary = text === undefined ? undefined : parseApprovalSummary(text, wrapping);
  const record = summary === undefined ? undefined : await store.get(recordKey(tenant, summary.seq));
  return record !== undefined && sha256Hex(record) === summary?.hash ? summary : undefined;
}

/** A session and the last of its records, in order. */
interface SessionTail {
  readonly summary: SessionSummary;
  readonly records: readonly ActionRecord[];
}

/** The end of a session; undefined for one that the tenant does not have. Records that are kept no more are left out. */
async function readTail(
  store: EvidenceStore,
  tenant: string,
  session: string,
  maxRecords: number,
): Promise<SessionTail | undefined> {
  const summary = parseSessionSummary((await store.get(sessionKey(tenant, session))) ?? "");
  if (summary === undefined) return undefined;
  const seqs = await store.values({ ...sessionRecordRange(tenant, session), reverse: true, limit: maxRecords }).all();
  const texts = await store.getMany(seqs.reverse().map((seq) => recordKey(tenant, Number(seq))));
  const records = texts.flatMap((text) => readAction(text) ?? []);
  return { summary, records };
}

/**
 * The arguments of the action that a decision is about; undefined where not every field of them is kept, or where the
 * fields do not say whether they were an object. Throws EVIDENCE_UNAVAILABLE where they are damaged.
 */
async function readArguments(
  store: EvidenceStore,
  wrapping: WrappingKey,
  { tenant, seq }: Pick<DisclosurePlace, "tenant" | "seq">,
): Promise<JsonObject | undefined> {
  const record = readAction(await store.get(recordKey(tenant, seq)));
  if (record === undefined) return undefined;
  const fields = (await discloseRecord(store, wrapping, record)).arguments;
  const members = fields?.flatMap(({ name, value }) => (name && value !== undefined ? [[name, value] as const] : []));
  if (members === undefined || members.length !== fields?.length) return undefined;
  return Object.fromEntries(members);
}

function readAction(text: string | undefined): ActionRecord | undefined {
  const record = text === undefined ? undefined : readRecord(text);
  return record === undefined || isChainFault(record) || !isAction(record) ? undefined : record;
}
