/**
 * Gives turns of the event loop to heavy work: one in each, and tenant by tenant. What has come meanwhile is served between
 * them, however many wait. Work that has begun goes on before other work of its tenant begins: little is under way at once.
 */
export class TurnQueue {
  /** The work that waits, by tenant; the tenant whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isServing = false;

  /** Calls `go` in a turn of its own, once it is the tenant's. */
  enter(tenant: string, work: "new" | "begun", go: () => void): void {
    const lane = this.#waiting.get(tenant);
    if (lane === undefined) this.#waiting.set(tenant, [go]);
    else if (work === "new") lane.push(go);
    else lane.unshift(go);
    if (!this.#isServing) setImmediate(this.#serve);
    this.#isServing = true;
  }

  readonly #serve = (): void => {
    const [next] = this.#waiting;
    if (next === undefined) throw new TypeError("TurnQueue: expected somebody to wait");
    const [tenant, lane] = next;
    const go = lane.shift();
    this.#waiting.delete(tenant);
    if (lane.length > 0) this.#waiting.set(tenant, lane);
    this.#isServing = this.#waiting.size > 0;
    // Asked for while immediates run, it comes in the next turn.
    if (this.#isServing) setImmediate(this.#serve);
    go?.();
  };
}
