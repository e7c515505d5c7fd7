import type { Approval, ApprovalState } from "../action/approval.ts";

/** An approval that something can still happen to, or that still answers for one: a denial is remembered for a while. */
export interface LiveApproval {
  readonly approval: Approval;
  /** Monotonic milliseconds: no setting of the clock makes it last longer. */
  readonly deadlineMs: number;
  /** What its sealed action takes of the tenant's share. */
  readonly heldBytes: number;
}

export interface Fingerprints {
  readonly exact: string;
  readonly task: string;
}

/** Of all tenants. `fullest`: the share, 0 to 1, that one tenant's approvals take of its room. */
export interface ApprovalStanding {
  readonly pending: number;
  readonly approved: number;
  readonly fullest: number;
}

/** One tenant's. */
interface Shelf {
  readonly byId: Map<string, LiveApproval>;
  /** The newest of each fingerprint. */
  readonly byFingerprint: Map<string, LiveApproval>;
  heldBytes: number;
}

/** The approvals in memory: what the next call is compared with, in one turn of the event loop. */
export class LiveTable {
  readonly #shelves = new Map<string, Shelf>();

  get(tenant: string, id: string): LiveApproval | undefined {
    return this.#shelves.get(tenant)?.byId.get(id);
  }

  /** The approval that answers for an action: what was decided about this very action, one of its task, or any. */
  find(tenant: string, { exact, task }: Fingerprints): LiveApproval | undefined {
    const shelf = this.#shelves.get(tenant);
    const own = shelf?.byFingerprint.get(exact);
    if (own !== undefined && own.approval.state !== "pending") return own;
    return shelf?.byFingerprint.get(task) ?? own;
  }

  /** Adds an approval, or puts it in the place of the one of its id. */
  put(live: LiveApproval): void {
    const { tenant, id } = live.approval;
    this.remove(tenant, id);
    const shelf = this.#shelfOf(tenant);
    shelf.byId.set(id, live);
    for (const bound of boundTo(live.approval)) shelf.byFingerprint.set(bound, live);
    shelf.heldBytes += live.heldBytes;
  }

  remove(tenant: string, id: string): void {
    const shelf = this.#shelves.get(tenant);
    const live = shelf?.byId.get(id);
    if (shelf === undefined || live === undefined) return;
    shelf.byId.delete(id);
    for (const bound of boundTo(live.approval)) {
      if (shelf.byFingerprint.get(bound) !== live) continue;
      shelf.byFingerprint.delete(bound);
      // Several may be approved for one task; no two are for one action alone.
      if (live.approval.scope === "task") uncover(shelf, bound);
    }
    shelf.heldBytes -= live.heldBytes;
    if (shelf.byId.size === 0) this.#shelves.delete(tenant);
  }

  /** A tenant's in the order in which they were asked for. */
  of(tenant: string): readonly LiveApproval[] {
    return [...(this.#shelves.get(tenant)?.byId.values() ?? [])].sort((a, b) =>
      a.approval.id < b.approval.id ? -1 : 1,
    );
  }

  count(tenant: string, ...states: readonly ApprovalState[]): number {
    let count = 0;
    for (const { approval } of this.#shelves.get(tenant)?.byId.values() ?? []) {
      if (states.includes(approval.state)) count++;
    }
    return count;
  }

  /** How many of all tenants are in each of the two states that take room, and how full the fullest tenant's is. */
  standing(limits: { readonly maxLive: number; readonly maxHeldBytes: number }): ApprovalStanding {
    let [pending, approved, fullest] = [0, 0, 0];
    for (const [tenant, { heldBytes }] of this.#shelves) {
      const waiting = this.count(tenant, "pending");
      const usable = this.count(tenant, "approved");
      pending += waiting;
      approved += usable;
      fullest = Math.max(fullest, (waiting + usable) / limits.maxLive, heldBytes / limits.maxHeldBytes);
    }
    return { pending, approved, fullest };
  }

  heldBytes(tenant: string): number {
    return this.#shelves.get(tenant)?.heldBytes ?? 0;
  }

  /** Those whose time is over. */
  pastDue(monotonicMs: number, clockMs: number): readonly LiveApproval[] {
    return [...this.#shelves.values()].flatMap(({ byId }) =>
      [...byId.values()].filter((live) => isLate(live, monotonicMs, clockMs)),
    );
  }

  #shelfOf(tenant: string): Shelf {
    const known = this.#shelves.get(tenant);
    if (known !== undefined) return known;
    const shelf = { byId: new Map(), byFingerprint: new Map(), heldBytes: 0 };
    this.#shelves.set(tenant, shelf);
    return shelf;
  }
}

/** Lets the newest of those that are left answer for a fingerprint. */
function uncover({ byId, byFingerprint }: Shelf, bound: string): void {
  for (const live of byId.values()) if (boundTo(live.approval).includes(bound)) byFingerprint.set(bound, live);
}

/** Whether the time is over, by the clock or by what really passed: setting the clock back prolongs nothing. */
export function isLate({ approval, deadlineMs }: LiveApproval, monotonicMs: number, clockMs: number): boolean {
  return deadlineMs <= monotonicMs || Date.parse(approval.expires_at) <= clockMs;
}

/** The exact action always; with scope `task`, every action of the task too. */
function boundTo({ scope, fingerprint, task_fingerprint: task }: Approval): readonly string[] {
  return scope === "task" ? [fingerprint, task] : [fingerprint];
}
