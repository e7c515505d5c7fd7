import { canonicalJson } from "../action/canonical-json.ts";
import type { JsonObject } from "../action/json.ts";
import { forgetOldest } from "../action/recent-map.ts";
import { type ChainFault, chainFault } from "../evidence/record/reason.ts";
import type { ActionRecord, EventRecord } from "../evidence/record/record.ts";
import type { RecordCheck, RecordRule } from "../evidence/verify/record-rule.ts";

/** Nothing is dispatched while its session, principal, tenant or the gateway is stopped by an event of the chain. */
export const killRule: RecordRule = { start: (maxRemembered) => new KillCheck(maxRemembered) };

class KillCheck implements RecordCheck {
  readonly #maxRemembered: number;
  readonly #stopped = new Set<string>();

  constructor(maxRemembered: number) {
    this.#maxRemembered = maxRemembered;
  }

  readEvent({ kind, detail }: EventRecord): void {
    if (kind !== "session") return;
    const { event, scope } = detail;
    if (event === "released") this.#stopped.delete(keyOf(scope, detail));
    if (event !== "killed") return;
    this.#stopped.add(keyOf(scope, detail));
    forgetOldest(this.#stopped, this.#maxRemembered);
  }

  /** A kill from before the cut is still in force after it. */
  readKeptEvent(event: EventRecord): void {
    this.readEvent(event);
  }

  checkDispatch({ principal, session }: ActionRecord): ChainFault | undefined {
    if (this.#stopped.size === 0) return undefined;
    const ids = { session: session.id, principal: principal.id };
    const isStopped = ["session", "principal", "tenant", "gateway"].some((scope) =>
      this.#stopped.has(keyOf(scope, ids)),
    );
    return isStopped ? chainFault("allow_after_kill", "expected nothing that is stopped to be dispatched") : undefined;
  }
}

/** A session or a principal is named by the member called like its scope. Without a scope it is a session. */
function keyOf(scope: JsonObject[string] = "session", names: JsonObject): string {
  return canonicalJson([scope, names[String(scope)] ?? null]);
}
