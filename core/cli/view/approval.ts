import { type Approval, isFinal } from "../../action/approval.ts";
import { quoteVisible, quoteWord, visibleJson, visibleText } from "../../action/visible-text.ts";
import { summarizeAction, summaryLine } from "../../approval/summary.ts";
import type { ApprovalView, ChangeView, RecentAction } from "../../approval/view.ts";
import { answerView, listView, tableView, type View } from "../admin-view.ts";
import type { Column } from "../table.ts";
import { changeLines } from "./change.ts";

/** The columns of a list of approvals, with the time that matters to its readers. */
function approvalColumns(time: Column<Approval>): readonly Column<Approval>[] {
  return [
    { title: "approval", of: ({ id }) => id, isWhole: true },
    { title: "state", of: ({ state, reason }) => (reason === undefined ? state : `${state} (${reason})`) },
    time,
    { title: "key", of: ({ principal }) => visibleText(principal.key_id), isPrintable: true },
    { title: "action", of: ({ action }) => actionWords(action), isPrintable: true },
    { title: "rules", of: ({ evaluation }) => evaluation.rules.map(visibleText).join(", "), isPrintable: true },
    { title: "tainted", of: ({ tainted = [] }) => tainted.map(visibleText).join(", "), isPrintable: true },
    { title: "reviewers", of: quorumOf },
  ];
}

export const approvalList: View = listView<Approval>(
  approvalColumns({ title: "left", of: (approval) => timeLeft(approval, Date.now()) }),
);

export const pastApprovalList: View = listView<Approval>(
  approvalColumns({ title: "requested", of: ({ requested_at: at }) => at, isWhole: true }),
);

export const approvalDetail: View = answerView<ApprovalView>((view, { adminFlag }) => {
  return { text: renderApproval(view, Date.now(), adminFlag).trimEnd() };
});

interface Reviewed {
  readonly approval: Approval;
}

export const approvedRequest: View = answerView<Reviewed>(({ approval }, { values }) => {
  const { id, state, endorsements, required } = approval;
  if (state === "pending") {
    return { json: approval, notes: [`${endorsements.length} of ${required} reviewers approved ${id}`] };
  }
  const left = timeLeft(approval, Date.now());
  const notes = [`approved ${id} for one use: the agent has ${left} to repeat exactly the same call`];
  if (values.break_glass !== undefined) notes.push(`record the post-mortem with \`gateway break-glass close ${id}\``);
  return { json: approval, notes };
});

export const deniedRequest: View = answerView<Reviewed>(({ approval }) => {
  return { json: approval, notes: [`denied ${approval.id}`] };
});

export const breakGlassList: View = tableView<Approval>([
  { title: "approval", of: ({ id }) => id, isWhole: true },
  { title: "state", of: ({ state }) => state },
  { title: "used", of: ({ break_glass: use }) => use?.at ?? "", isWhole: true },
  { title: "action", of: ({ action }) => actionWords(action), isPrintable: true },
  { title: "reason", of: ({ break_glass: use }) => quoteVisible(use?.reason ?? ""), isPrintable: true },
]);

/**
 * Renders all that a reviewer needs to decide for a terminal: the arguments whole, every character that is not seen as
 * itself escaped, whatever an agent wrote. `adminFlag` is appended to the commands printed as the next step.
 */
export function renderApproval(view: ApprovalView, nowMs: number, adminFlag: string): string {
  const parts = [
    headOf(view, nowMs),
    argumentsOf(view),
    ...(view.changes === null ? [] : [changesOf(view.changes)]),
    ...(view.recent.length === 0 ? [] : [section("the session's last actions", view.recent.map(recentLine))]),
    ...nextOf(view, adminFlag),
  ];
  return parts.map((lines) => `${lines.join("\n")}\n`).join("\n");
}

/** Renders an approval on one line: `apr_…  pending  29 min left  ci  write …`. */
export function approvalLine(approval: Approval, nowMs: number): string {
  const { id, state, reason, principal, evaluation, tainted, requested_at: requested } = approval;
  const words = [
    id,
    reason === undefined ? state : `${state} (${reason})`,
    isFinal(state) ? requested : `${timeLeft(approval, nowMs)} left`,
    visibleText(principal.key_id),
    actionWords(approval.action),
    evaluation.rules.map(visibleText).join(", "),
    tainted === undefined ? "" : `tainted ${tainted.map(visibleText).join(", ")}`,
    quorumOf(approval),
  ];
  return words.filter((word) => word !== "").join("  ");
}

function quorumOf({ state, required, endorsements }: Approval): string {
  return state === "pending" && required > 1 ? `${endorsements.length} of ${required} approved` : "";
}

/** `write write_file on files` */
function actionWords({ capability, tool, target }: Pick<Approval["action"], "capability" | "tool" | "target">): string {
  return `${capability} ${quoteWord(tool)} on ${quoteWord(target)}`;
}

/** The time until an approval expires: `29 min`, `40 s`, or `no time`. */
function timeLeft({ expires_at: expires }: Approval, nowMs: number): string {
  const seconds = Math.floor((Date.parse(expires) - nowMs) / 1_000);
  if (seconds <= 0) return "no time";
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
}

function headOf({ approval, held, session, risk }: ApprovalView, nowMs: number): readonly string[] {
  const { id, state, principal, action, evaluation, requested_at: requested, reason } = approval;
  const left = isFinal(state) ? "" : `, ${timeLeft(approval, nowMs)} left`;
  return [
    `${id}  ${state}${reason === undefined ? "" : ` (${reason})`}${left}`,
    "",
    row("asked by", `${visibleText(principal.key_id)} (${principal.role}), ${principal.id}`),
    ...clientOf(held),
    row("asked at", requested),
    row("session", sessionText(approval, session)),
    ...(action.task === null ? [] : [row("task", quoteVisible(action.task))]),
    row("action", held === null ? actionWords(action) : summaryLine(summarizeAction(held.action))),
    row("risk", `${risk} of 100${held === null ? "" : `, its session's ${held.action.session_state?.risk ?? 0}`}`),
    ...taintsOf(held),
    ...rulesOf({ held, evaluation }),
    ...reviewOf(approval),
  ];
}

function clientOf(held: ApprovalView["held"]): readonly string[] {
  if (held === null) return [];
  const { name, version, address } = held.action.client;
  return [row("through", `${quoteVisible(name)} ${quoteVisible(version)} at ${visibleText(address)}`)];
}

function sessionText({ session: { id, transport } }: Approval, session: ApprovalView["session"]): string {
  if (session === null) return `${id} over ${transport}`;
  const { label, allow, review, block, started_at: started } = session;
  const name = label === undefined ? "" : ` ${quoteVisible(label)}`;
  return `${id}${name} over ${transport}: ${allow} allowed, ${review} held, ${block} blocked since ${started}`;
}

/** The taints of the session when the action was held. */
function taintsOf(held: ApprovalView["held"]): readonly string[] {
  const taints = held?.action.session_state?.taints ?? [];
  return taints.map(({ name, tool, target, action, at }) => {
    const source = `${quoteWord(tool)} on ${quoteWord(target)}`;
    return row("tainted", `${visibleText(name)}, at ${new Date(at).toISOString()} by ${source}, action ${action}`);
  });
}

function rulesOf({
  held,
  evaluation,
}: {
  held: ApprovalView["held"];
  evaluation: Approval["evaluation"];
}): readonly string[] {
  if (evaluation.by_default) return [row("held by", "the default: no rule matches")];
  if (held === null) return evaluation.rules.map((rule) => row("held by", visibleText(rule)));
  return held.rules.map(({ rule, severity, message }) =>
    row("held by", `${visibleText(rule)} (${severity}): ${quoteVisible(message)}`),
  );
}

function reviewOf({
  required,
  endorsements,
  reviewer,
  state,
  comment,
  break_glass: glass,
}: Approval): readonly string[] {
  return [
    row("reviewers", `${endorsements.length} of ${required} approved`),
    ...endorsements.map(({ key_id: key, at, scope, comment: remark }) =>
      row("", `${visibleText(key)} at ${at}, scope ${scope}${remark === undefined ? "" : `: ${quoteVisible(remark)}`}`),
    ),
    ...(state === "denied"
      ? [row("denied by", `${reviewer}${comment === undefined ? "" : `: ${quoteVisible(comment)}`}`)]
      : []),
    ...(glass === undefined
      ? []
      : [row("break-glass", `by ${glass.by} at ${glass.at}: ${quoteVisible(glass.reason)}`)]),
    ...(glass?.post_mortem === undefined ? [] : [row("post-mortem", quoteVisible(glass.post_mortem.text))]),
  ];
}

function argumentsOf({ held, withheld }: ApprovalView): readonly string[] {
  if (held !== null) {
    const { continuation } = held.action;
    const more = continuation === undefined ? [] : ["", "continued with", visibleJson(continuation)];
    return ["arguments, whole", visibleJson(held.action.arguments), ...more];
  }
  if (withheld === "role") return ["arguments are shown to reviewers only"];
  if (withheld === "over") return ["arguments are in the evidence only: the review is over"];
  return ["arguments are no longer stored whole: this cannot be approved. The agent can ask again."];
}

function changesOf({ since, items, omitted }: ChangeView): readonly string[] {
  if (items.length === 0) return [`unchanged since ${since}, the last call of this tool that was approved and ran`];
  const more = omitted === 0 ? [] : [`and ${omitted} more changes`];
  return section(`changed since ${since}, the last call of this tool that was approved and ran`, [
    ...items.flatMap(changeLines),
    ...more,
  ]);
}

function recentLine({ time, decision, effect, approval, ...action }: RecentAction): string {
  const review = approval === null ? "" : `  ${approval.id} ${approval.state}`;
  return `${time}  ${decision ?? "unknown"}  ${effect.replace("_", " ")}  ${actionWords(action)}${review}`;
}

function nextOf(
  { approval: { id, state }, withheld }: ApprovalView,
  adminFlag: string,
): readonly (readonly string[])[] {
  if (state !== "pending" || withheld === "role") return [];
  const deny = `gateway approvals deny ${id}${adminFlag}`;
  return [section("next", withheld === null ? [`gateway approvals approve ${id}${adminFlag}`, deny] : [deny])];
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return [title, ...lines.map((line) => `  ${line}`)];
}

function row(name: string, text: string): string {
  return `${name.padEnd(12)}${text}`;
}
