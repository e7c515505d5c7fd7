import type { Cancellation } from "../action/cancellation.ts";
import type { Principal } from "../action/principal.ts";
import type { KillTarget } from "../kill/kill.ts";

type Abortable = Pick<Cancellation, "abort">;

interface Entry {
  readonly principal: Principal;
  readonly aborts: Set<Abortable>;
}

/** The requests in flight, by governed session: one session may span many connections and handshakes. */
export class InFlight {
  readonly #entries = new Map<string, Entry>();

  /** `session` is of this principal alone, as its id says. */
  begin(principal: Principal, session: string, abort: Abortable): void {
    const entry = this.#entries.get(session) ?? { principal, aborts: new Set() };
    this.#entries.set(session, entry);
    entry.aborts.add(abort);
  }

  finish(session: string, abort: Abortable): void {
    const entry = this.#entries.get(session);
    entry?.aborts.delete(abort);
    if (entry?.aborts.size === 0) this.#entries.delete(session);
  }

  /**
   * Ends all that a kill in `tenant` covers with `reason`; what upstreams have of it is cancelled there. `isStoppedWith`:
   * returns whether a kill of another session of the principal covers a session.
   */
  cancel(
    tenant: string,
    target: KillTarget,
    reason: Error,
    isStoppedWith: (session: string, principal: string) => boolean,
  ): void {
    for (const [session, entry] of this.#entries) {
      const { principal } = entry;
      const isOther = target.scope === "session" && principal.tenant === tenant && isStoppedWith(session, principal.id);
      if (!isOther && !covers(tenant, target, session, principal)) continue;
      for (const abort of entry.aborts) abort.abort(reason);
    }
  }
}

function covers(tenant: string, { scope, subject }: KillTarget, session: string, principal: Principal): boolean {
  if (scope === "gateway") return true;
  if (principal.tenant !== tenant) return false;
  return scope === "tenant" || subject === (scope === "principal" ? principal.id : session);
}
