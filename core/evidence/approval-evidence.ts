import type { ApprovalState, ToldApproval, ToldApprovals } from "../kernel/approval.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import { GatewayError } from "../kernel/error.ts";
import { fingerprint, taskFingerprint } from "../kernel/fingerprint.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Operation } from "../kernel/operation.ts";
import type { ChainTable } from "./chain-table.ts";
import { ChainWalk } from "./chain-walk.ts";
import { isFault } from "./fault.ts";
import { openHeld, releaseHeld } from "./held-action.ts";
import type { Mark } from "./high-water.ts";
import { type EvidenceStore, recordKey, recordRange } from "./key-space.ts";
import type { EvidenceRecord } from "./record.ts";
import { isAction } from "./record-text.ts";
import { readArguments, readTail, type SessionTail } from "./review-evidence.ts";
import { readFault } from "./store-fault.ts";

/** What an action binds an approval to, as evidence says it: keyed commitments. */
export interface CommittedFingerprints {
  readonly exact: string;
  readonly task: string;
}

export interface ApprovalEvidenceParts {
  readonly store: EvidenceStore;
  readonly chains: ChainTable;
  /** The last record of a tenant that is durable. */
  readonly markOf: (tenant: string) => Mark | undefined;
  readonly writable: () => boolean;
  readonly record: (tenant: string, detail: JsonObject, operations: readonly Operation[]) => Promise<void>;
}

/** The evidence of approvals, as far as the queue needs it: it trusts nothing of its own that the chain does not say. */
export class ApprovalEvidence {
  readonly #parts: ApprovalEvidenceParts;

  constructor(parts: ApprovalEvidenceParts) {
    this.#parts = parts;
  }

  /** False from a failed write until a repair. */
  get writable(): boolean {
    return this.#parts.writable();
  }

  /** Records what happened to an approval; `operations` happen with it, or not at all. Rejects with EVIDENCE_UNAVAILABLE. */
  record(tenant: string, detail: JsonObject, operations: readonly Operation[]): Promise<void> {
    return this.#parts.record(tenant, detail, operations);
  }

  async fingerprints(action: ActionEnvelope): Promise<CommittedFingerprints> {
    const { wrapping } = await this.#parts.chains.open(action.tenant);
    return {
      exact: wrapping.commitFingerprint(fingerprint(action)),
      task: wrapping.commitFingerprint(taskFingerprint(action)),
    };
  }

  /** The text of the action that the decision `seq` held; undefined where it is kept no more. */
  async held(tenant: string, seq: number): Promise<string | undefined> {
    const { id, wrapping } = this.#parts.chains.get(tenant);
    return this.#read(() => openHeld(this.#parts.store, wrapping, { tenant, chain: id, seq }));
  }

  /** The arguments of the action that the decision `seq` is about; undefined where they are not kept whole. */
  async arguments(tenant: string, seq: number): Promise<JsonObject | undefined> {
    const { wrapping } = this.#parts.chains.get(tenant);
    return this.#read(() => readArguments(this.#parts.store, wrapping, { tenant, seq }));
  }

  /** A session and its last records, `most` of them; undefined for one that the tenant does not have. */
  async session(tenant: string, id: string, most: number): Promise<SessionTail | undefined> {
    this.#parts.chains.checkTrusted(tenant);
    return this.#read(() => readTail(this.#parts.store, tenant, id, most));
  }

  /** What deletes a held action. */
  release(tenant: string, seq: number): Operation {
    return releaseHeld(tenant, seq);
  }

  /** Vouches for the text of an approval's entry with the key of the chain. */
  seal(tenant: string, text: string): string {
    return this.#parts.chains.get(tenant).wrapping.authenticate("approval-entry-v1", text);
  }

  /**
   * What the chain says of every approval that record `from` or a later one names. Reads all of them, each linked to the
   * next, past the high-water mark. A tenant whose chain is broken there is refused: EVIDENCE_UNAVAILABLE.
   */
  async told(tenant: string, from: number): Promise<ToldApprovals> {
    const { chains, markOf, store } = this.#parts;
    const { id } = chains.get(tenant);
    const mark = markOf(tenant);
    const first = Math.min(from, mark?.seq ?? 0);
    const byId = new Map<string, ToldApproval>();
    const walk = new ChainWalk(tenant, id, first);
    let latestMs = 0;
    let isMarked = false;
    for await (const [key, text] of store.iterator({ ...recordRange(tenant), gte: recordKey(tenant, first) })) {
      const step = walk.accept(key, text);
      if (isFault(step)) throw this.#refuse(tenant, walk.head.seq + 1, step.fault);
      isMarked ||= step.record.seq === mark?.seq && step.hash === mark.head;
      latestMs = Math.max(latestMs, Date.parse(step.record.time));
      tell(byId, step.record);
    }
    if (isMarked) return { byId, latestMs };
    throw this.#refuse(tenant, walk.head.seq + 1, "expected to pass the high-water mark");
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

const stateOf: Readonly<Record<string, ApprovalState>> = { approved: "approved", denied: "denied", expired: "expired" };

function tell(told: Map<string, ToldApproval>, record: EvidenceRecord): void {
  if (isAction(record)) {
    const { approval, kind } = record;
    if (approval === undefined || kind !== "decision") return;
    if (approval.state === "consumed" || !told.has(approval.id)) {
      told.set(approval.id, { state: approval.state as ApprovalState, fingerprint: approval.fingerprint });
    }
    return;
  }
  const { event, fingerprint: bound, id } = record.detail;
  const state = typeof event === "string" ? stateOf[event] : undefined;
  if (record.kind !== "approval" || state === undefined || typeof id !== "string" || typeof bound !== "string") return;
  // INVARIANT: nothing follows a use, whatever is recorded after it.
  if (told.get(id)?.state !== "consumed") told.set(id, { state, fingerprint: bound });
}
