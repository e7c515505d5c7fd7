import type { ShownField } from "../bundle/build.ts";
import type {
  ReportedAction,
  ReportedApprovalStep,
  ReportedDecision,
  ReportedOutcome,
  ReportedPolicy,
  SessionReport,
} from "./model.ts";

/** The sentences about one action. Both renderers escape each as a whole. */
interface ActionWording {
  /** A sentence on the effect of the action; null where its arguments were not read. */
  readonly does: string | null;
  /** Null where no decision was recorded. */
  readonly decision: string | null;
  readonly approval: readonly string[];
  readonly outcome: string;
  readonly shadow: readonly string[];
}

export function describeAction(action: ReportedAction): ActionWording {
  return {
    does: action.facts && describeShownFacts(action.facts),
    decision: action.judged && describeDecision(action.judged),
    approval: describeApproval(action),
    outcome: describeOutcome(action),
    shadow: describeShadowDecisions(action),
  };
}

/** "Does: drops orders (effect delete)"; the effect alone where the facts have no words or are not shown. */
function describeShownFacts({ does, effect, fields }: NonNullable<ReportedAction["facts"]>): string {
  const hidden = fields.some((field) => !("value" in field)) ? "; not all facts are shown" : "";
  return does.length === 0 ? `Effect ${effect}${hidden}` : `Does: ${does.join("; ")} (effect ${effect})${hidden}`;
}

const decided: Readonly<Record<string, string>> = { allow: "Allowed", review: "Held for review", block: "Blocked" };

/** "Blocked by rule `x` of pack baseline 1.0.0, unsigned". */
function describeDecision(judged: ReportedDecision): string {
  const word = decided[judged.decision] ?? judged.decision;
  if (judged.by_default) return `${word} by default: no rule is about this action`;
  const rules = judged.rules.length === 0 ? "no rule" : plural(judged.rules, "rule");
  const policies = judged.policies.length === 0 ? "" : ` of ${judged.policies.map(describeJudge).join(" and ")}`;
  const errors = judged.errors.length === 0 ? "" : `; could not answer: ${judged.errors.join(", ")}`;
  return `${word} by ${rules}${policies}${errors}`;
}

const shadowVerb: Readonly<Record<string, string>> = { review: "held for review", block: "blocked" };

/** "Would have been blocked by rule x in shadow mode": a line for each decision, of the action and of its answer. */
function describeShadowDecisions({ judged, outcome }: ReportedAction): readonly string[] {
  const answer = outcome?.judged?.would_have ?? [];
  return [
    ...describeShadowRules("Would have been", judged?.would_have ?? []),
    ...describeShadowRules("The answer would have been", answer),
  ];
}

function describeShadowRules(beginning: string, decisions: ReportedDecision["would_have"]): readonly string[] {
  return ["block", "review"].flatMap((decision) => {
    const rules = decisions.filter((each) => each.decision === decision).map(({ rule }) => rule);
    return rules.length === 0
      ? []
      : [`${beginning} ${shadowVerb[decision]} by ${plural(rules, "rule")} in shadow mode`];
  });
}

function plural(names: readonly string[], word: string): string {
  return `${word}${names.length === 1 ? "" : "s"} ${names.join(", ")}`;
}

/** A policy, and that its verdict was another server's. */
function describeJudge(policy: ReportedPolicy): string {
  const known = describePolicy(policy);
  if (policy.replayable !== false) return known;
  const answer = policy.answer_digest === undefined ? "it gave no answer" : `answer ${policy.answer_digest}`;
  return `${known} (decided by another server, not replayable: ${answer})`;
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

/** The history of the approval, a line for each step; empty where no approval was needed. */
function describeApproval({ approval }: ReportedAction): readonly string[] {
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

/** The outcome: "Succeeded", "Not carried out", "Still on its way". */
function describeOutcome({ dispatched, outcome }: ReportedAction): string {
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

/** A field's name, and its value as JSON or the beginning of its commitment where it is withheld. */
export function describeField(field: ShownField): readonly [name: string, value: string] {
  if (!("value" in field)) return ["a field", `withheld (commitment ${field.commitment.slice(0, 16)}…)`];
  return [field.name === "" ? "(the whole value)" : field.name, JSON.stringify(field.value)];
}

/**
 * Counts what was decided and what came of it. A held action and the one that used its approval are two actions; the
 * second was decided by a person and is carried out like one that was allowed.
 */
export function describeSummary({ actions: all, pruned_records: pruned, summary }: SessionReport): string {
  const { actions, allow, review, block, success, error, unknown, open } = summary;
  const approved = all.filter(({ dispatched, judged }) => dispatched && judged?.decision === "review").length;
  const decided = [
    `${allow} allowed`,
    ...(approved === 0 ? [] : [`${approved} passed with an approval`]),
    `${review - approved} held for review`,
    `${block} blocked`,
  ];
  const ended = [
    `${success} succeeded`,
    `${error} ended in an error`,
    `${unknown} ended unknown`,
    ...(open === 0 ? [] : [`${open} had not ended yet`]),
  ];
  const asked = `${actions} action${actions === 1 ? "" : "s"} attempted: ${decided.join(", ")}.`;
  const carriedOut = `Of the ${allow + approved} carried out, ${ended.join(", ")}.`;
  const missing = pruned === 0 ? "" : ` Not the whole session: its first ${pruned} records were pruned.`;
  return `${asked} ${carriedOut}${missing}`;
}
