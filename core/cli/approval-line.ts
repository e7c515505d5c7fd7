import { showWord } from "../approval/action-summary.ts";
import { type Approval, isFinal } from "../kernel/approval.ts";
import { visibleText } from "../kernel/visible-text.ts";

/** An approval on one line, fit for a terminal whatever the agent named: `apr_…  pending  29 min left  ci  write …`. */
export function approvalLine(approval: Approval, nowMs: number): string {
  const { id, state, principal, evaluation, requested_at: requested } = approval;
  const when = isFinal(state) ? requested : `${timeLeft(approval, nowMs)} left`;
  const words = [id, endOf(approval), when, visibleText(principal.key_id), actionWords(approval.action)];
  const rules = evaluation.rules.map(visibleText).join(", ");
  return [...words, rules, ...taintsOf(approval), ...quorumOf(approval)].filter((word) => word !== "").join("  ");
}

/** `write write_file on files` */
export function actionWords({
  capability,
  tool,
  target,
}: Pick<Approval["action"], "capability" | "tool" | "target">): string {
  return `${capability} ${showWord(tool)} on ${showWord(target)}`;
}

/** How long until it expires: `29 min`, `40 s`, or `no time`. */
export function timeLeft({ expires_at: expires }: Approval, nowMs: number): string {
  const seconds = Math.floor((Date.parse(expires) - nowMs) / 1_000);
  if (seconds <= 0) return "no time";
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
}

function endOf({ state, reason }: Approval): string {
  return reason === undefined ? state : `${state} (${reason})`;
}

function taintsOf({ tainted }: Approval): readonly string[] {
  return tainted === undefined ? [] : [`tainted ${tainted.map(visibleText).join(", ")}`];
}

function quorumOf({ state, required, endorsements }: Approval): readonly string[] {
  return state === "pending" && required > 1 ? [`${endorsements.length} of ${required} yes`] : [];
}
