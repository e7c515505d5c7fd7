import { canonicalJson } from "../action/canonical-json.ts";
import type { Json, JsonObject } from "../action/json.ts";
import { forgetOldest } from "../action/recent-map.ts";
import type { ActionRecord, EventRecord, RecordedAction } from "../evidence/record/record.ts";

type ApprovalBreach = "dispatch_without_allow" | "approval_consumed_twice" | "approval_mismatch";

/** How much is remembered of a chain; a bundle is short enough to remember all of it. */
interface ApprovalBounds {
  readonly live: number;
  readonly consumed: number;
}

/**
 * What a chain may say of approvals: each dispatched action that was held for review rests on an approval given before,
 * for this very action (in scope `task` for this action with other values), in its session, and never used before.
 * Remembers no more approvals than its bounds, the oldest forgotten first: what rests on a forgotten one is refused.
 */
export class ApprovalRules {
  readonly #bounds: ApprovalBounds;
  readonly #given = new Map<string, JsonObject>();
  readonly #consumed = new Set<string>();
  /** Approvals given by break-glass whose post-mortem is owed: id to the number of the record. */
  readonly #owed = new Map<string, number>();

  constructor(bounds: ApprovalBounds) {
    this.#bounds = bounds;
  }

  /** Takes the next `approval` event of the chain. */
  note({ detail, seq }: EventRecord): void {
    const { event, id } = detail;
    if (typeof id !== "string") return;
    if (event === "approved") this.#give(id, detail, seq);
    if (event === "denied" || event === "expired") this.#given.delete(id);
    if (event === "post_mortem") this.#owed.delete(id);
  }

  /** Takes the next dispatched decision; says which rule it breaks. */
  check(record: ActionRecord): ApprovalBreach | undefined {
    const { approval, evaluation } = record;
    const decision = evaluation?.decision;
    if (decision !== "allow" && (decision !== "review" || approval === undefined)) return "dispatch_without_allow";
    if (approval === undefined) return undefined;
    if (this.#consumed.has(approval.id)) return "approval_consumed_twice";
    const given = this.#given.get(approval.id);
    if (decision === "allow" || given === undefined || !permits(given, record)) return "approval_mismatch";
    this.#given.delete(approval.id);
    this.#consumed.add(approval.id);
    forgetOldest(this.#consumed, this.#bounds.consumed);
    return undefined;
  }

  /** The records of break-glass approvals that no post-mortem followed. */
  get owed(): readonly number[] {
    return [...this.#owed.values()];
  }

  #give(id: string, detail: JsonObject, seq: number): void {
    this.#given.delete(id);
    this.#given.set(id, detail);
    forgetOldest(this.#given, this.#bounds.live);
    if (!Object.hasOwn(detail, "break_glass")) return;
    this.#owed.set(id, seq);
    forgetOldest(this.#owed, this.#bounds.live);
  }
}

/** What an approval in scope `task` leaves open are the values of the arguments, and nothing else. */
const taskMembers = ["capability", "protocol", "target", "task", "tool"] as const satisfies (keyof RecordedAction)[];

function permits(given: JsonObject, { action, approval, session }: ActionRecord): boolean {
  if (approval?.state !== "consumed" || approval.fingerprint !== given.fingerprint) return false;
  if (given.session !== session.id) return false;
  if (given.scope !== "task") return approval.fingerprint === action.fingerprint;
  const own = Object.fromEntries(taskMembers.map((name) => [name, action[name] ?? null]));
  return canonicalJson(given.action ?? null) === canonicalJson(own as Json);
}
