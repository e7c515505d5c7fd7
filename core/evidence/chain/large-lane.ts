/**
 * Lets the large records of a tenant go to the disk one at a time: what others have to record waits for one of them at most,
 * however many are on their way.
 */
export class LargeLane {
  /** The newest of each tenant. */
  readonly #newest = new Map<string, Promise<unknown>>();

  /** Calls `write` once the large record of the tenant before it is written, or failed. Settles as it does. */
  async run<T>(tenant: string, write: () => Promise<T>): Promise<T> {
    const before = this.#newest.get(tenant);
    const own = before === undefined ? write() : before.then(write, write);
    this.#newest.set(tenant, own);
    try {
      return await own;
    } finally {
      if (this.#newest.get(tenant) === own) this.#newest.delete(tenant);
    }
  }
}
