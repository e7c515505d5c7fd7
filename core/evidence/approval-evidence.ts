import type { ApprovalState, ToldApproval } from "../kernel/approval.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import { fingerprint, taskFingerprint } from "../kernel/fingerprint.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Operation } from "../kernel/operation.ts";
import type { ChainTable } from "./chain-table.ts";
import { parseCheckpoint } from "./checkpoint.ts";
import { isFault } from "./fault.ts";
import { openHeld, releaseHeld } from "./held-action.ts";
import { checkpointKey, type EvidenceStore, recordKey, recordRange } from "./key-space.ts";
import type { EvidenceRecord } from "./record.ts";
import { isAction, readRecord } from "./record-text.ts";
import { readFault } from "./store-fault.ts";

/** What an action binds an approval to, as evidence says it: keyed commitments. */
export interface CommittedFingerprints {
  readonly exact: string;
  readonly task: string;
}

export interface ApprovalEvidenceParts {
  readonly store: EvidenceStore;
  readonly chains: ChainTable;
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
    try {
      return await openHeld(this.#parts.store, wrapping, { tenant, chain: id, seq });
    } catch (error) {
      throw readFault(error);
    }
  }

  /** What deletes it. */
  release(tenant: string, seq: number): Operation {
    return releaseHeld(tenant, seq);
  }

  /** What the chain says of every approval that record `from` or a later one names. Reads all of them. */
  async told(tenant: string, from: number): Promise<ReadonlyMap<string, ToldApproval>> {
    const told = new Map<string, ToldApproval>();
    const range = { ...recordRange(tenant), gte: recordKey(tenant, from) };
    for await (const text of this.#parts.store.values(range)) {
      // Most records name none, and reading one costs far more than looking.
      if (!text.includes('"apr_')) continue;
      const record = readRecord(text);
      if (!isFault(record)) tell(told, record);
    }
    return told;
  }

  /** The time of the chain's last record, RFC 3339; undefined before there is one. */
  async latestTime(tenant: string): Promise<string | undefined> {
    const note = await this.#parts.store.get(checkpointKey(tenant));
    return note === undefined ? undefined : parseCheckpoint(note)?.time;
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
