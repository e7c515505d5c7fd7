/** Whose work it is, and what it holds while it waits. */
export interface Claim {
  readonly plugin: string;
  readonly tenant: string;
  readonly bytes: number;
}

/** Whom a turn goes to: first a plugin, then a tenant there. */
interface Lanes {
  readonly plugin: string;
  readonly tenant: string;
}

const most = { claims: 256, bytes: 67_108_864 } as const;
const mostLanes = 1_024;

/**
 * Work that waits for a thread. Bounded in all, for a plugin, for a tenant, and for a tenant at a plugin, so that none
 * fills it for the others. The next is of the plugin that was served longest ago; among its work, of the tenant that
 * was; then the oldest.
 */
export class FairQueue<Work extends Claim> {
  readonly #waiting = new Map<Work, Lanes>();
  /** When each lane was last served, as a count of turns. */
  readonly #served = new Map<string, number>();
  #turn = 0;

  get length(): number {
    return this.#waiting.size;
  }

  /** False, and it does not wait, where that would be more than its share. */
  push(work: Work): boolean {
    if (!this.#fits(work)) return false;
    const { plugin, tenant } = work;
    const lanes = { plugin, tenant: JSON.stringify([plugin, tenant]) };
    this.#waiting.set(work, lanes);
    // Who is new comes after who waits already: else coming and going would be a way to the front.
    for (const lane of Object.values(lanes)) if (!this.#served.has(lane)) this.#serve(lane);
    return true;
  }

  /** Takes out whose turn it is among the work that may be done now. */
  take(isAllowed: (work: Work) => boolean): Work | undefined {
    let next: { readonly work: Work; readonly lanes: Lanes } | undefined;
    for (const [work, lanes] of this.#waiting) {
      if (isAllowed(work) && (next === undefined || this.#isBefore(lanes, next.lanes))) next = { work, lanes };
    }
    if (next === undefined) return undefined;
    this.#waiting.delete(next.work);
    for (const lane of Object.values(next.lanes)) this.#serve(lane);
    return next.work;
  }

  remove(work: Work): void {
    this.#waiting.delete(work);
  }

  #fits({ plugin, tenant, bytes }: Work): boolean {
    const held = { all: none, plugin: none, tenant: none, both: none };
    for (const other of this.#waiting.keys()) {
      held.all = add(held.all, other.bytes);
      if (other.plugin === plugin) held.plugin = add(held.plugin, other.bytes);
      if (other.tenant === tenant) held.tenant = add(held.tenant, other.bytes);
      if (other.plugin === plugin && other.tenant === tenant) held.both = add(held.both, other.bytes);
    }
    const isWithin = (held: Held, share: number): boolean =>
      held.claims < most.claims * share && held.bytes + bytes <= most.bytes * share;
    return (
      isWithin(held.all, 1) &&
      isWithin(held.plugin, 1 / 2) &&
      isWithin(held.tenant, 1 / 2) &&
      isWithin(held.both, 1 / 4)
    );
  }

  #isBefore(lanes: Lanes, others: Lanes): boolean {
    const name = lanes.plugin === others.plugin ? "tenant" : "plugin";
    return (this.#served.get(lanes[name]) ?? 0) < (this.#served.get(others[name]) ?? 0);
  }

  #serve(lane: string): void {
    this.#served.delete(lane);
    this.#served.set(lane, ++this.#turn);
    const [oldest] = this.#served.keys();
    if (this.#served.size > mostLanes && oldest !== undefined) this.#served.delete(oldest);
  }
}

interface Held {
  readonly claims: number;
  readonly bytes: number;
}

const none: Held = { claims: 0, bytes: 0 };

function add({ claims, bytes }: Held, more: number): Held {
  return { claims: claims + 1, bytes: bytes + more };
}
