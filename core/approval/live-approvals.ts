import type { Approval, ApprovalState, FormerApproval } from "../action/approval.ts";
import { forgetOldest } from "../action/recent-map.ts";

/** An approval in memory: pending, approved, or denied a short while ago. */
export interface LiveApproval {
  readonly approval: Approval;
  /** Gateway time, in milliseconds: setting the wall clock neither extends nor shortens it. */
  readonly deadlineMs: number;
  /** Size of its sealed action, which counts towards the limit of the tenant. */
  readonly heldBytes: number;
}

export interface Fingerprints {
  readonly exact: string;
  readonly task: string;
}

/** Counts over all tenants. */
export interface ApprovalStatus {
  readonly pending: number;
  readonly approved: number;
  /** The largest share, 0 to 1, that one tenant uses of its limits. */
  readonly fullest: number;
}

/** The part of the limits that some live approvals use. */
interface QueueUse {
  readonly approvals: number;
  readonly bytes: number;
  /** Gateway time at which the first of them ends by itself; infinite where there is none. */
  readonly firstDeadlineMs: number;
}

/** The live approvals of one tenant. */
interface TenantApprovals {
  readonly byId: Map<string, LiveApproval>;
  /** The newest of each fingerprint. */
  readonly byFingerprint: Map<string, LiveApproval>;
  heldBytes: number;
}

/** The approvals in memory, which the next action is compared with in one turn of the event loop. */
export class LiveApprovals {
  readonly #tenants = new Map<string, TenantApprovals>();

  get(tenant: string, id: string): LiveApproval | undefined {
    return this.#tenants.get(tenant)?.byId.get(id);
  }

  /** Finds the approval for an action: one decided for this very action, else one of its task, else a pending one. */
  find(tenant: string, { exact, task }: Fingerprints): LiveApproval | undefined {
    const approvals = this.#tenants.get(tenant);
    const own = approvals?.byFingerprint.get(exact);
    if (own !== undefined && own.approval.state !== "pending") return own;
    return approvals?.byFingerprint.get(task) ?? own;
  }

  /** Adds an approval, replacing the one with its id. */
  put(live: LiveApproval): void {
    const { tenant, id } = live.approval;
    this.remove(tenant, id);
    const approvals = this.#approvalsOf(tenant);
    approvals.byId.set(id, live);
    for (const fingerprint of fingerprintsOf(live.approval)) approvals.byFingerprint.set(fingerprint, live);
    approvals.heldBytes += live.heldBytes;
  }

  remove(tenant: string, id: string): void {
    const approvals = this.#tenants.get(tenant);
    const live = approvals?.byId.get(id);
    if (approvals === undefined || live === undefined) return;
    approvals.byId.delete(id);
    for (const fingerprint of fingerprintsOf(live.approval)) {
      if (approvals.byFingerprint.get(fingerprint) !== live) continue;
      approvals.byFingerprint.delete(fingerprint);
      // Several may be approved for one task; no two are for one action alone.
      if (live.approval.scope === "task") restoreOlder(approvals, fingerprint);
    }
    approvals.heldBytes -= live.heldBytes;
    if (approvals.byId.size === 0) this.#tenants.delete(tenant);
  }

  /** The approvals of a tenant, the oldest request first. */
  of(tenant: string): readonly LiveApproval[] {
    return [...(this.#tenants.get(tenant)?.byId.values() ?? [])].sort((a, b) =>
      a.approval.id < b.approval.id ? -1 : 1,
    );
  }

  count(tenant: string, ...states: readonly ApprovalState[]): number {
    let count = 0;
    for (const { approval } of this.#tenants.get(tenant)?.byId.values() ?? []) {
      if (states.includes(approval.state)) count++;
    }
    return count;
  }

  /** Counts pending and approved approvals of all tenants, and how full the fullest tenant is. */
  status(limits: { readonly maxLive: number; readonly maxHeldBytes: number }): ApprovalStatus {
    let [pending, approved, fullest] = [0, 0, 0];
    for (const [tenant, { heldBytes }] of this.#tenants) {
      const waiting = this.count(tenant, "pending");
      const usable = this.count(tenant, "approved");
      pending += waiting;
      approved += usable;
      fullest = Math.max(fullest, (waiting + usable) / limits.maxLive, heldBytes / limits.maxHeldBytes);
    }
    return { pending, approved, fullest };
  }

  /** Sums up the live approvals of one requester, or of the whole tenant. */
  use(tenant: string, principal?: string): QueueUse {
    const use = { approvals: 0, bytes: 0, firstDeadlineMs: Number.POSITIVE_INFINITY };
    for (const { approval, heldBytes, deadlineMs } of this.#tenants.get(tenant)?.byId.values() ?? []) {
      if (principal !== undefined && approval.principal.id !== principal) continue;
      use.bytes += heldBytes;
      if (approval.state !== "pending" && approval.state !== "approved") continue;
      use.approvals++;
      use.firstDeadlineMs = Math.min(use.firstDeadlineMs, deadlineMs);
    }
    return use;
  }

  findOverdue(now: number): readonly LiveApproval[] {
    return [...this.#tenants.values()].flatMap(({ byId }) => [...byId.values()].filter((live) => isOverdue(live, now)));
  }

  #approvalsOf(tenant: string): TenantApprovals {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const approvals = { byId: new Map(), byFingerprint: new Map(), heldBytes: 0 };
    this.#tenants.set(tenant, approvals);
    return approvals;
  }
}

/** Returns whether its time is over. `now`: gateway time. */
export function isOverdue({ deadlineMs }: LiveApproval, now: number): boolean {
  return deadlineMs <= now;
}

/** Maps a fingerprint to the newest of the remaining approvals. */
function restoreOlder({ byId, byFingerprint }: TenantApprovals, fingerprint: string): void {
  for (const live of byId.values()) {
    if (fingerprintsOf(live.approval).includes(fingerprint)) byFingerprint.set(fingerprint, live);
  }
}

/** The exact action always; with scope `task`, also every action of the task. */
function fingerprintsOf({ scope, fingerprint, task_fingerprint: task }: Approval): readonly string[] {
  return scope === "task" ? [fingerprint, task] : [fingerprint];
}

const maxFormer = 10_000;

/** Remembers how the last approval of each action ended, for the text of later refusals. Bounded; decides nothing. */
export class FormerApprovals {
  readonly #byFingerprint = new Map<string, FormerApproval>();

  add({ id, state, reason, fingerprint }: Approval): void {
    this.#byFingerprint.delete(fingerprint);
    this.#byFingerprint.set(fingerprint, reason === undefined ? { id, state } : { id, state, reason });
    forgetOldest(this.#byFingerprint, maxFormer);
  }

  find(fingerprint: string): FormerApproval | undefined {
    return this.#byFingerprint.get(fingerprint);
  }
}
