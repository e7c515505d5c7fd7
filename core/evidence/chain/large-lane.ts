/**
 * Lets the large records of a tenant go to the disk one at a time: what others have to record waits for one of them at most,
 * however many are on their way.
 */
export class LargeLane {
  /** The newest of each tenant. */
  readonly #newest = new Map<string, Promise<void>>();

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
    return () => {
      if (this.#newest.get(tenant) === own) this.#newest.delete(tenant);
      leave();
    };
  }
}
