import { type Approval, isFinal, type RecordedApprovalStates } from "../action/approval.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Store } from "../store/open.ts";
import { approvalKey, putEntry, readEntry, type Seal } from "./entry.ts";
import { type Fingerprints, FormerApprovals, type LiveApproval, LiveApprovals } from "./live-approvals.ts";

/** The part of the ledger that approvals use. A resolved write is durable; a rejected one may have happened or not. */
interface ApprovalJournal {
  /** False after a failed write, until a repair. */
  readonly writable: boolean;
  record(tenant: string, detail: JsonObject, operations: readonly BatchOperation[]): Promise<void>;
  fingerprints(action: ActionEnvelope): Promise<Fingerprints>;
  /** Reads the sealed text of the action that a decision held; undefined where it was deleted. */
  held(tenant: string, seq: number): Promise<string | undefined>;
  release(tenant: string, seq: number): BatchOperation;
  /** Computes the HMAC of an entry. Write access to the store is not enough to forge it. */
  seal(tenant: string, text: string): string;
  readApprovals(tenant: string, from: number): Promise<RecordedApprovalStates>;
}

export interface ApprovalLimits {
  /** Time to review. */
  readonly reviewMs: number;
  /** Time to use, from the approval. */
  readonly useMs: number;
  /** The part of both limits that one key may use. */
  readonly keySharePercent: number;
  /** Pending and approved, per tenant. */
  readonly maxLive: number;
  /** All sealed actions of a tenant together. */
  readonly maxHeldBytes: number;
}

export interface ApprovalStoreOptions {
  readonly store: Store;
  readonly journal: ApprovalJournal;
  readonly limits: ApprovalLimits;
  /** The wall clock: of the times that are shown and stored, by which a start judges them. */
  readonly clock: Clock;
  /** Decides when they end while the gateway runs. Setting the wall clock does not change it. */
  readonly gatewayTime: Clock;
  /** Called with each state once it is durable. Must not throw. */
  readonly onChange: (approval: Approval) => void;
}

/** The approvals in memory and in the store, with their state changes. */
export class ApprovalStore {
  readonly options: ApprovalStoreOptions;
  readonly live: LiveApprovals = new LiveApprovals();
  readonly former: FormerApprovals = new FormerApprovals();
  readonly #waiting = new Map<string, Set<(approval: Approval) => void>>();

  constructor(options: ApprovalStoreOptions) {
    this.options = options;
  }

  /** The current time, RFC 3339. */
  now(): string {
    return new Date(this.options.clock()).toISOString();
  }

  /** The time `ms` from now, RFC 3339. */
  after(ms: number): string {
    return new Date(this.options.clock() + ms).toISOString();
  }

  /** Finds an approval in memory or in the store. Throws NOT_FOUND, also for the id of another tenant. */
  async find(tenant: string, id: string): Promise<Approval> {
    const live = this.live.get(tenant, id);
    if (live !== undefined) return live.approval;
    const text = /^apr_[0-9a-f]{32}$/.test(id) ? await this.options.store.get(approvalKey(tenant, id)) : undefined;
    const approval = text === undefined ? undefined : this.read(tenant, id, text);
    if (approval === undefined) throw new GatewayError("NOT_FOUND", "no such approval");
    return approval;
  }

  /** Parses a stored entry; undefined for one that was not sealed by this gateway for this tenant and id. */
  read(tenant: string, id: string, text: string): Approval | undefined {
    const found = readEntry(text, tenant, id, this.#sealOf(tenant));
    return typeof found === "string" ? undefined : found;
  }

  /** Returns the operations that store `approval`. */
  put(approval: Approval): readonly BatchOperation[] {
    return putEntry(approval, this.#sealOf(approval.tenant));
  }

  #sealOf(tenant: string): Seal {
    return (text) => this.options.journal.seal(tenant, text);
  }

  /** Puts a durable review in force, and announces it where it decides. */
  advance({ deadlineMs, heldBytes }: LiveApproval, next: Approval): void {
    const { limits, gatewayTime } = this.options;
    const deadline = next.state === "approved" ? gatewayTime() + limits.useMs : deadlineMs;
    this.live.put({ approval: next, deadlineMs: deadline, heldBytes: isFinal(next.state) ? 0 : heldBytes });
    if (next.state !== "pending") this.announce(next);
  }

  /** Writes `next` and its record in one atomic batch. The caller updates the memory. */
  async record(next: Approval, detail: JsonObject, more: readonly BatchOperation[] = []): Promise<void> {
    const { journal } = this.options;
    const { id, session, tenant, held_seq: seq } = next;
    const released = isFinal(next.state) ? [journal.release(tenant, seq)] : [];
    const recorded = { id, session: session.id, fingerprint: boundFingerprint(next), ...detail };
    await journal.record(tenant, recorded, [...this.put(next), ...released, ...more]);
  }

  /** Publishes a durable state to `onChange` and to the callers of `decided`. */
  announce(approval: Approval): void {
    if (isFinal(approval.state)) this.former.add(approval);
    this.options.onChange(approval);
    const waiting = this.#waiting.get(approval.id);
    if (approval.state === "pending" || waiting === undefined) return;
    this.#waiting.delete(approval.id);
    for (const resolve of waiting) resolve(approval);
  }

  /** Resolves with the approval once it is not pending, or with its current state when `signal` aborts. */
  async decided(pending: Approval, signal: AbortSignal): Promise<Approval> {
    const now = await this.find(pending.tenant, pending.id);
    if (now.state !== "pending" || signal.aborted) return now;
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(now.id) ?? new Set();
      const settle = (approval: Approval): void => {
        signal.removeEventListener("abort", stop);
        waiting.delete(settle);
        if (waiting.size === 0) this.#waiting.delete(now.id);
        resolve(approval);
      };
      const stop = (): void => settle(this.live.get(now.tenant, now.id)?.approval ?? now);
      signal.addEventListener("abort", stop, { once: true });
      this.#waiting.set(now.id, waiting.add(settle));
    });
  }
}

/** The fingerprint that an approval is bound to in its scope. */
export function boundFingerprint({ scope, fingerprint, task_fingerprint: task }: Approval): string {
  return scope === "task" ? task : fingerprint;
}
