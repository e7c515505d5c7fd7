import type { ActionEnvelope } from "../kernel/envelope.ts";
import { everyUpstream } from "../kernel/envelope.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Evaluation } from "../kernel/evaluation.ts";
import type { Operation } from "../kernel/operation.ts";
import { taintsOf } from "./finding-effect.ts";
import type { KillSwitch } from "./kill-switch.ts";
import { pastOf } from "./past-action.ts";
import type { ReviewFlood } from "./review-flood.ts";
import { isStopped, type RiskParts, raiseRisk } from "./risk-stop.ts";
import type { SessionBook } from "./session-book.ts";
import type { SessionEntry } from "./session-entry.ts";
import type { KnownTool } from "./tool-table.ts";

export interface VisitParts extends RiskParts {
  readonly book: SessionBook;
  readonly killSwitch: RiskParts["killSwitch"] & Pick<KillSwitch, "check">;
  readonly reviews: Pick<ReviewFlood, "count">;
}

/** One action while it is decided. Until it is, it counts as one of its session's. */
export class SessionVisit {
  /** As policy is to see it. */
  readonly action: ActionEnvelope;
  readonly #parts: VisitParts;
  readonly #entry: SessionEntry;
  readonly #tool: KnownTool;
  #evaluation: Evaluation | undefined;
  #taints: readonly string[] = [];
  #isJudged = true;
  #isChanged = false;

  constructor(parts: VisitParts, entry: SessionEntry, tool: KnownTool, action: ActionEnvelope) {
    this.action = action;
    this.#parts = parts;
    this.#entry = entry;
    this.#tool = tool;
    entry.pins++;
    entry.judged++;
  }

  /**
   * Counts what policy said of the action, before that is recorded: its risk is the session's from now on, and where that
   * is too much, or the reviews are too many, the session is stopped when this returns. `asks`: a new review. A question
   * asked again and an approval that is used add no risk: a person looks, or has looked, at that. Nor does what a stopped
   * session attempts. Throws SESSION_STATE where the session would be tainted with more than can be remembered.
   */
  count(evaluation: Evaluation, asks: "nothing" | "review" | "again"): void {
    this.#evaluation = evaluation;
    this.#taints = taintsOf(this.action, evaluation);
    checkRoom(this.#entry, this.action, this.#taints);
    if (asks === "again" || isStopped(this.#parts, evaluation)) return;
    if (asks === "review") this.#countReview();
    if (raiseRisk(this.#parts, this.#entry, this.action, evaluation)) this.#isChanged = true;
  }

  /** Throws SESSION_KILLED where the session was stopped since the action was judged. */
  check(): void {
    this.#parts.killSwitch.check(this.action);
  }

  /** Makes the action part of its session's past; call when its decision gets its place. Returns what is written with it. */
  operations(dispatched: boolean): readonly Operation[] {
    const { action } = this;
    if (this.#evaluation === undefined)
      throw new TypeError("operations: expected what was decided to be counted first");
    // Asking what there is, is not yet doing something.
    if (action.target !== everyUpstream) this.#remember(this.#evaluation, dispatched);
    return this.#isChanged ? [this.#parts.book.put(action.tenant, action.session.id, this.#entry)] : [];
  }

  /** Call once, whatever came of it. */
  leave(): void {
    this.#endJudging();
    this.#entry.pins--;
  }

  #remember({ decision }: Evaluation, dispatched: boolean): void {
    const { action } = this;
    const at = this.#parts.clock();
    this.#endJudging();
    this.#entry.remember(this.#tool, pastOf(action, this.#tool, decision, dispatched, at));
    if (dispatched) this.#entry.taint(this.#taints, action, this.#tool, at);
    this.#isChanged = true;
  }

  #endJudging(): void {
    if (this.#isJudged) this.#entry.judged--;
    this.#isJudged = false;
  }

  #countReview(): void {
    this.#entry.countReview();
    this.#isChanged = true;
    this.#parts.reviews.count(this.action.tenant, this.action.session.id);
  }
}

/** Throws SESSION_STATE where a session cannot be tainted with all of that as well. */
export function checkRoom(entry: SessionEntry, { session }: ActionEnvelope, names: readonly string[]): void {
  if (entry.taints.hasRoom(names)) return;
  throw new GatewayError(
    "SESSION_STATE",
    `session \`${session.id}\` has more taints than can be remembered; an operator can reset it`,
  );
}
