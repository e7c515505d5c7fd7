import type { ShownField } from "../bundle/build.ts";
import type {
  ReportedAction,
  ReportedApprovalStep,
  ReportedDecision,
  ReportedOutcome,
  ReportedPolicy,
  SessionReport,
} from "./model.ts";

/** What a person is told, in words; both renderers escape it as a whole. */

const decided: Readonly<Record<string, string>> = { allow: "Allowed", review: "Held for review", block: "Blocked" };

/** "Blocked by rule `x` of pack baseline 1.0.0, unsigned". */
export function describeDecision(judged: ReportedDecision): string {
  const word = decided[judged.decision] ?? judged.decision;
  if (judged.by_default) return `${word} by default: no rule is about this action`;
  const rules = judged.rules.length === 0 ? "no rule" : plural(judged.rules, "rule");
  const policies = judged.policies.length === 0 ? "" : ` of ${judged.policies.map(describePolicy).join(" and ")}`;
  const errors = judged.errors.length === 0 ? "" : `; could not answer: ${judged.errors.join(", ")}`;
  return `${word} by ${rules}${policies}${errors}`;
}

const tried: Readonly<Record<string, string>> = { review: "held for review", block: "blocked" };

/** "Would have been blocked by rule `x`, which is in shadow mode", a line for each decision of both judgements. */
export function describeShadowDecisions({ judged, outcome }: ReportedAction): readonly string[] {
  const answer = outcome?.judged?.would_have ?? [];
  return [
    ...describeShadowRules("Would have been", judged?.would_have ?? []),
    ...describeShadowRules("The answer would have been", answer),
  ];
}

function describeShadowRules(beginning: string, trials: ReportedDecision["would_have"]): readonly string[] {
  return ["block", "review"].flatMap((decision) => {
    const rules = trials.filter((each) => each.decision === decision).map(({ rule }) => rule);
    return rules.length === 0 ? [] : [`${beginning} ${tried[decision]} by ${plural(rules, "rule")} in shadow mode`];
  });
}

function plural(names: readonly string[], word: string): string {
  return `${word}${names.length === 1 ? "" : "s"} ${names.join(", ")}`;
}

export function describePolicy({ name, version, signer }: Pick<ReportedPolicy, "name" | "version" | "signer">): string {
  return `${name} ${version}, ${signer === null ? "unsigned" : `signed by ${signer}`}`;
}

const happened: Readonly<Record<string, string>> = {
  approved: "Approved",
  denied: "Denied",
  endorsed: "Endorsed",
  expired: "Expired",
  post_mortem: "Post-mortem written",
};
const scopes: Readonly<Record<string, string>> = {
  exact: "for exactly this action",
  task: "for this task, with other values too",
};

/** The story of the approval, a line for each step; empty where nobody was asked. */
export function describeApproval({ approval }: ReportedAction): readonly string[] {
  if (approval === null) return [];
  const { break_glass: glass, held, id, steps, used } = approval;
  return [
    held === null ? `Approval ${id}` : `Held as ${id} by record ${held}`,
    ...steps.map(describeApprovalStep),
    ...(glass === null ? [] : [`Break-glass: ${glass.reason}`]),
    ...(glass === null || glass.post_mortem !== null ? [] : ["Post-mortem still open"]),
    used === null ? "Not used" : `Used by record ${used}`,
  ];
}

function describeApprovalStep({ by, event, scope, seq, text, time }: ReportedApprovalStep): string {
  const who = by === null ? "" : ` by ${by}`;
  const what = event === "approved" && scope !== null ? `, ${scopes[scope] ?? scope}` : "";
  return `${happened[event] ?? event}${who} at ${time} (record ${seq})${what}${text === null ? "" : `: ${text}`}`;
}

/** How it ended: "Succeeded", "Not carried out", "Still on its way". */
export function describeOutcome({ dispatched, outcome }: ReportedAction): string {
  if (outcome === null) return dispatched ? "Still on its way when this was written" : "Not carried out";
  if (outcome.status === "unknown")
    return `Sent, outcome unknown${outcome.reason === null ? "" : `: ${outcome.reason}`}`;
  const answer = outcome.status === "success" ? "Succeeded" : "Answered with an error";
  const isWithheld = outcome.judged !== null && outcome.judged.decision !== "allow";
  const withheld = isWithheld ? "; the answer was withheld from the agent" : "";
  return `${answer}${withheld}${describeRedactions(outcome.redactions)}`;
}

function describeRedactions(redactions: ReportedOutcome["redactions"]): string {
  if (redactions.length === 0) return "";
  return `; redacted by ${redactions.map(({ count, rule }) => `${rule} (${count})`).join(", ")}`;
}

/** A field's value as JSON, or that it is withheld. */
export function describeValue(field: ShownField): string {
  return "value" in field ? JSON.stringify(field.value) : `withheld (commitment ${field.commitment.slice(0, 16)}…)`;
}

export function describeName(field: ShownField): string {
  if (!("name" in field)) return "a field";
  return field.name === "" ? "(the whole value)" : field.name;
}

export function describeSummary({ pruned_records: pruned, summary }: SessionReport): string {
  const { actions, allow, review, block, success, error, unknown, open } = summary;
  const asked = `${actions} action${actions === 1 ? "" : "s"} attempted: ${allow} allowed, ${review} held for review, ${block} blocked.`;
  const ended = `Of those allowed, ${success} succeeded, ${error} ended in an error, ${unknown} ended unknown`;
  const missing = pruned === 0 ? "" : ` Not the whole session: its first ${pruned} records were pruned.`;
  return `${asked} ${ended}${open === 0 ? "" : `, ${open} still on the way`}.${missing}`;
}
