import { canonicalJson } from "../action/canonical-json.ts";
import type { JsonObject } from "../action/json.ts";
import { forgetOldest } from "../action/recent-map.ts";
import type { ActionRecord, EventRecord } from "../evidence/record/record.ts";

/**
 * What stands stopped by a chain's own events: sessions, principals, the tenant, the whole gateway. Nothing that is
 * covered may be dispatched. Remembers at most `most`; the oldest are let go of.
 */
export class KillRules {
  readonly #most: number;
  readonly #stopped = new Set<string>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Takes the next event of kind `session`. */
  note({ detail }: EventRecord): void {
    const { event, scope } = detail;
    if (event === "released") this.#stopped.delete(keyOf(scope, detail));
    if (event !== "killed") return;
    this.#stopped.add(keyOf(scope, detail));
    forgetOldest(this.#stopped, this.#most);
  }

  /** Whether something that this action belongs to stands stopped. */
  covers({ principal, session }: ActionRecord): boolean {
    if (this.#stopped.size === 0) return false;
    const ids = { session: session.id, principal: principal.id };
    return ["session", "principal", "tenant", "gateway"].some((scope) => this.#stopped.has(keyOf(scope, ids)));
  }
}

/** A session or a principal is named by the member that the scope is called. Where there is no scope it is a session. */
function keyOf(scope: JsonObject[string] = "session", names: JsonObject): string {
  return canonicalJson([scope, names[String(scope)] ?? null]);
}
