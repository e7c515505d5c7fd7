import type { AbstractBatchOptions, AbstractLevel } from "abstract-level";
import { type Approval, isFinal, type RecordedApprovalStates } from "../action/approval.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import { approvalKey, putEntry, readEntry, type Seal } from "./entry.ts";
import { FormerApprovals } from "./former-approval.ts";
import { type Fingerprints, type LiveApproval, LiveTable } from "./live-table.ts";

/** The option that makes a write wait for the disk; the abstract interface does not name it, both engines take it. */
export const durably: AbstractBatchOptions<string, string> & { readonly sync: true } = { sync: true };

type ApprovalStore = AbstractLevel<string | Buffer | Uint8Array, string, string>;

/** The evidence as approvals need it. Whatever resolves is durable; what rejects may or may not have happened. */
interface ApprovalJournal {
  /** False from a failed write until a repair. */
  readonly writable: boolean;
  record(tenant: string, detail: JsonObject, operations: readonly BatchOperation[]): Promise<void>;
  fingerprints(action: ActionEnvelope): Promise<Fingerprints>;
  /** The sealed text of the action that a decision held; undefined where it is kept no more. */
  held(tenant: string, seq: number): Promise<string | undefined>;
  release(tenant: string, seq: number): BatchOperation;
  /** Vouches for the text of an entry: who can write the store cannot. */
  seal(tenant: string, text: string): string;
  readApprovals(tenant: string, from: number): Promise<RecordedApprovalStates>;
}

export interface ApprovalLimits {
  /** Time to review. */
  readonly reviewMs: number;
  /** Time to use, from the approval on. */
  readonly useMs: number;
  /** Pending and approved, per tenant. */
  readonly maxLive: number;
  /** Sealed actions of a tenant together. */
  readonly maxHeldBytes: number;
}

export interface BookParts {
  readonly store: ApprovalStore;
  readonly journal: ApprovalJournal;
  readonly limits: ApprovalLimits;
  readonly clock: Clock;
  /** Milliseconds that only grow, whatever the clock is set to. */
  readonly monotonicMs: () => number;
  /** Hears of each state once it is durable. Must not throw. */
  readonly onChange: (approval: Approval) => void;
}

/** The approvals, in memory and in the store, and the one way from a state to the next. */
export class ApprovalBook {
  readonly parts: BookParts;
  readonly live: LiveTable = new LiveTable();
  readonly former: FormerApprovals = new FormerApprovals();
  readonly #waiting = new Map<string, Set<(approval: Approval) => void>>();

  constructor(parts: BookParts) {
    this.parts = parts;
  }

  /** The current time, RFC 3339. */
  now(): string {
    return new Date(this.parts.clock()).toISOString();
  }

  /** `ms` from now, RFC 3339. */
  after(ms: number): string {
    return new Date(this.parts.clock() + ms).toISOString();
  }

  /** An approval of the tenant, in memory or in the store. Throws NOT_FOUND for a foreign id as for an unknown one. */
  async find(tenant: string, id: string): Promise<Approval> {
    const live = this.live.get(tenant, id);
    if (live !== undefined) return live.approval;
    const text = /^apr_[0-9a-f]{32}$/.test(id) ? await this.parts.store.get(approvalKey(tenant, id)) : undefined;
    const approval = text === undefined ? undefined : this.read(tenant, id, text);
    if (approval === undefined) throw new GatewayError("NOT_FOUND", "no such approval");
    return approval;
  }

  /** The approval that a stored text is; undefined for one that was not written here, for this tenant and id. */
  read(tenant: string, id: string, text: string): Approval | undefined {
    const found = readEntry(text, tenant, id, this.#sealOf(tenant));
    return typeof found === "string" ? undefined : found;
  }

  /** What makes `approval` the stored one. */
  put(approval: Approval): readonly BatchOperation[] {
    return putEntry(approval, this.#sealOf(approval.tenant));
  }

  #sealOf(tenant: string): Seal {
    return (text) => this.parts.journal.seal(tenant, text);
  }

  /** Puts an answer in force that is durable, and tells of it once it decides. A denied action is kept no more. */
  advance({ deadlineMs, heldBytes }: LiveApproval, next: Approval): void {
    const { limits, monotonicMs } = this.parts;
    const deadline = next.state === "approved" ? monotonicMs() + limits.useMs : deadlineMs;
    this.live.put({ approval: next, deadlineMs: deadline, heldBytes: isFinal(next.state) ? 0 : heldBytes });
    if (next.state !== "pending") this.announce(next);
  }

  /** Makes `next` durable together with the record that tells of it. Memory is the caller's. */
  async record(next: Approval, detail: JsonObject, more: readonly BatchOperation[] = []): Promise<void> {
    const { journal } = this.parts;
    const { id, session, tenant, held_seq: seq } = next;
    const released = isFinal(next.state) ? [journal.release(tenant, seq)] : [];
    const told = { id, session: session.id, fingerprint: boundFingerprint(next), ...detail };
    await journal.record(tenant, told, [...this.put(next), ...released, ...more]);
  }

  /** Tells everyone who waits, and who listens, of a state that is durable. */
  announce(approval: Approval): void {
    if (isFinal(approval.state)) this.former.add(approval);
    this.parts.onChange(approval);
    const waiting = this.#waiting.get(approval.id);
    if (approval.state === "pending" || waiting === undefined) return;
    this.#waiting.delete(approval.id);
    for (const tell of waiting) tell(approval);
  }

  /** Resolves with the approval as soon as it is not pending any more; with what it is when `signal` aborts. */
  async decided(pending: Approval, signal: AbortSignal): Promise<Approval> {
    const now = await this.find(pending.tenant, pending.id);
    if (now.state !== "pending" || signal.aborted) return now;
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(now.id) ?? new Set();
      const settle = (approval: Approval): void => {
        signal.removeEventListener("abort", giveUp);
        waiting.delete(settle);
        if (waiting.size === 0) this.#waiting.delete(now.id);
        resolve(approval);
      };
      const giveUp = (): void => settle(this.live.get(now.tenant, now.id)?.approval ?? now);
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.set(now.id, waiting.add(settle));
    });
  }
}

/** What an approval is bound to in its scope. */
export function boundFingerprint({ scope, fingerprint, task_fingerprint: task }: Approval): string {
  return scope === "task" ? task : fingerprint;
}
