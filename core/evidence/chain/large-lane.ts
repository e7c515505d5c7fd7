import type { BatchThread } from "./batch-thread.ts";

/**
 * Lets the large records of a tenant go to the disk one at a time: what others have to record waits for one of them at most,
 * however many are on their way. None goes before the thread that encodes it has started: records of others would wait for that.
 */
export class LargeLane {
  /** The newest of each tenant. */
  readonly #newest = new Map<string, Promise<void>>();
  readonly #thread: Pick<BatchThread, "started"> | undefined;

  constructor(thread: Pick<BatchThread, "started"> | undefined) {
    this.#thread = thread;
  }

  /**
   * Resolves once the large record of the tenant before it is written, or failed, with the function to call when this one
   * is.
   */
  async enter(tenant: string): Promise<() => void> {
    const before = this.#newest.get(tenant);
    let leave = (): void => undefined;
    const own = new Promise<void>((resolve) => {
      leave = resolve;
    });
    this.#newest.set(tenant, own);
    await before;
    await this.#thread?.started();
    return () => {
      if (this.#newest.get(tenant) === own) this.#newest.delete(tenant);
      leave();
    };
  }
}
