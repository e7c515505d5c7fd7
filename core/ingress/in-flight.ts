/** What is being served, by the governed session it acts in: one may span many connections and handshakes. */
export class InFlight {
  readonly #aborts = new Map<string, Set<AbortController>>();

  begin(session: string, abort: AbortController): void {
    const aborts = this.#aborts.get(session) ?? new Set();
    this.#aborts.set(session, aborts.add(abort));
  }

  finish(session: string, abort: AbortController): void {
    const aborts = this.#aborts.get(session);
    aborts?.delete(abort);
    if (aborts?.size === 0) this.#aborts.delete(session);
  }

  /** Ends all of a session's requests with `reason`; what upstreams have of them is cancelled there. */
  cancel(session: string, reason: Error): void {
    for (const abort of this.#aborts.get(session) ?? []) abort.abort(reason);
  }
}
