import { canonicalJson } from "../action/canonical-json.ts";
import type { JsonObject } from "../action/json.ts";
import { forgetOldest } from "../action/recent-map.ts";
import type { ActionRecord, EventRecord } from "../evidence/record/record.ts";

/**
 * Verifies that no action is dispatched after a kill of its session, principal, tenant or the whole gateway, by the events
 * of the chain. Keeps at most `maxKills`; the oldest are dropped.
 */
export class KillRules {
  readonly #maxKills: number;
  readonly #stopped = new Set<string>();

  constructor(maxKills: number) {
    this.#maxKills = maxKills;
  }

  /** Reads the next event of kind `session`. */
  note({ detail }: EventRecord): void {
    const { event, scope } = detail;
    if (event === "released") this.#stopped.delete(keyOf(scope, detail));
    if (event !== "killed") return;
    this.#stopped.add(keyOf(scope, detail));
    forgetOldest(this.#stopped, this.#maxKills);
  }

  /** Whether a kill covers the action. */
  covers({ principal, session }: ActionRecord): boolean {
    if (this.#stopped.size === 0) return false;
    const ids = { session: session.id, principal: principal.id };
    return ["session", "principal", "tenant", "gateway"].some((scope) => this.#stopped.has(keyOf(scope, ids)));
  }
}

/** A session or a principal is named by the member with the name of the scope. Without a scope it is a session. */
function keyOf(scope: JsonObject[string] = "session", names: JsonObject): string {
  return canonicalJson([scope, names[String(scope)] ?? null]);
}
