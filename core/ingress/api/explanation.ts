import { capabilities } from "../../kernel/capability.ts";
import { ticketStandings } from "../../kernel/capability-ticket.ts";
import { phases, protocols } from "../../kernel/envelope.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { modes, severities } from "../../kernel/policy.ts";
import type { Operations } from "./operation.ts";
import { decisionId } from "./parameter.ts";
import { answers, anyText, count, flag, list, nullable, object, oneOf, points, ref, texts, time } from "./shape.ts";

const outcomes = ["true", "false", "value", "error", "not_asked", "too_dear", "not_kept"];
const ruleOutcomes = ["held", "failed", "match", "when", "unless", "expired", "exception", "ticket", "too_dear"];

const rule: Readonly<Record<string, JsonObject>> = {
  rule: anyText,
  title: anyText,
  decision: ref("Decision"),
  severity: oneOf(severities),
  mode: oneOf(modes),
  file: anyText,
  line: count,
  outcome: oneOf(ruleOutcomes),
  why: anyText,
  mismatches: list(object({ key: anyText, expected: texts, got: anyText })),
  conditions: list(object({ name: anyText, expression: ref("ExplainedExpression") })),
};

const finding = object(
  {
    rule: anyText,
    decision: ref("Decision"),
    severity: oneOf(severities),
    mode: oneOf(modes),
    pointer: anyText,
    message: nullable(anyText),
  },
  ["pointer"],
);

const policy = object({
  policy: ref("PolicyRef"),
  mode: oneOf(modes),
  verdict: oneOf(["allow", "review", "block", "abstain"]),
  decided: flag,
  error: nullable(anyText),
  standing: oneOf(["same", "changed", "gone"]),
  findings: list(finding),
  rules: list(ref("ExplainedRule")),
});

const action = object({
  id: anyText,
  protocol: oneOf(protocols),
  tool: anyText,
  target: anyText,
  capability: oneOf(capabilities),
  task: nullable(anyText),
  principal: anyText,
  session: anyText,
  session_state: nullable(object({ risk: count, actions: count, taints: texts })),
  ticket: nullable(object({ id: nullable(anyText), standing: oneOf(ticketStandings) })),
});

/** What explanations are made of. */
export const explanationSchemas: Readonly<Record<string, JsonObject>> = {
  ExplainedExpression: object({
    text: anyText,
    outcome: oneOf(outcomes),
    value: nullable(anyText),
    parts: list(ref("ExplainedExpression")),
    more: flag,
  }),
  ExplainedRule: object(rule),
  Explanation: object({
    id: anyText,
    time,
    phase: oneOf(phases),
    decision: ref("Decision"),
    by_default: flag,
    risk: points,
    rules: texts,
    why: anyText,
    source: oneOf(["request", "memory", "approval", "evidence"]),
    values: oneOf(["shown", "redacted", "withheld", "not_kept"]),
    action,
    policies: list(policy),
    near: list(object({ ...rule, policy: anyText })),
    notes: texts,
  }),
};

/** Why something was decided. */
export const explanationOperations: Operations<"admin.explain"> = {
  "admin.explain": {
    name: "explainDecision",
    subject: "policy",
    summary: "Why a decision is what it is; by its id or its action's. That somebody looked goes on record",
    params: { id: decisionId },
    answer: answers("The explanation, as far as what it needs is kept.", ref("Explanation")),
    refusals: ["EVIDENCE_UNAVAILABLE"],
  },
};
