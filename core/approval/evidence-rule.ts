import { canonicalJson } from "../action/canonical-json.ts";
import type { Json, JsonObject } from "../action/json.ts";
import { forgetOldest } from "../action/recent-map.ts";
import { type ChainFault, chainFault } from "../evidence/record/reason.ts";
import type { ActionRecord, EventRecord, RecordedAction } from "../evidence/record/record.ts";
import type { RecordCheck, RecordRule } from "../evidence/verify/record-rule.ts";

/**
 * A dispatched action was allowed, or was held for review and rests on an approval that was given before, for this very
 * action (in scope `task`: for this action with other values), in its session, and was never used before.
 * An action that rests on an approval no longer remembered is refused.
 */
export const approvalRule: RecordRule = { start: (maxRemembered) => new ApprovalCheck(maxRemembered) };

class ApprovalCheck implements RecordCheck {
  readonly #maxRemembered: number;
  readonly #given = new Map<string, JsonObject>();
  readonly #consumed = new Set<string>();
  /** Break-glass approvals without a post-mortem: id to sequence number. */
  readonly #unexplained = new Map<string, number>();

  constructor(maxRemembered: number) {
    this.#maxRemembered = maxRemembered;
  }

  readEvent({ kind, detail, seq }: EventRecord): void {
    const { event, id } = detail;
    if (kind !== "approval" || typeof id !== "string") return;
    if (event === "approved") this.#give(id, detail, seq);
    if (event === "denied" || event === "expired") this.#given.delete(id);
    if (event === "post_mortem") this.#unexplained.delete(id);
  }

  checkDispatch(record: ActionRecord): ChainFault | undefined {
    const { approval, evaluation } = record;
    const decision = evaluation?.decision;
    if (decision !== "allow" && (decision !== "review" || approval === undefined)) {
      const text = "expected only an action that was allowed or approved to be dispatched";
      return chainFault("dispatch_without_allow", text);
    }
    if (approval === undefined) return undefined;
    if (this.#consumed.has(approval.id)) {
      return chainFault("approval_consumed_twice", "expected an approval to be used once, got a second use");
    }
    const given = this.#given.get(approval.id);
    if (decision === "allow" || given === undefined || !permits(given, record)) {
      return chainFault("approval_mismatch", "the approval was not given for this action, or no longer stood");
    }
    this.#given.delete(approval.id);
    this.#consumed.add(approval.id);
    forgetOldest(this.#consumed, this.#maxRemembered);
    return undefined;
  }

  missingPostMortems(): readonly number[] {
    return [...this.#unexplained.values()];
  }

  #give(id: string, detail: JsonObject, seq: number): void {
    this.#given.delete(id);
    this.#given.set(id, detail);
    forgetOldest(this.#given, this.#maxRemembered);
    if (!Object.hasOwn(detail, "break_glass")) return;
    this.#unexplained.set(id, seq);
    forgetOldest(this.#unexplained, this.#maxRemembered);
  }
}

/** An approval in scope `task` leaves the values of the arguments open, and nothing else. */
const taskMembers = ["capability", "protocol", "target", "task", "tool"] as const satisfies (keyof RecordedAction)[];

function permits(given: JsonObject, { action, approval, session }: ActionRecord): boolean {
  if (approval?.state !== "consumed" || approval.fingerprint !== given.fingerprint) return false;
  if (given.session !== session.id) return false;
  if (given.scope !== "task") return approval.fingerprint === action.fingerprint;
  const own = Object.fromEntries(taskMembers.map((name) => [name, action[name] ?? null]));
  return canonicalJson(given.action ?? null) === canonicalJson(own as Json);
}
