import { setImmediate as nextTurn } from "node:timers/promises";
import type { TProperties, TSchema } from "@sinclair/typebox";
import { capabilities } from "../action/capability.ts";
import { ticketStandings } from "../action/capability-ticket.ts";
import { type ActionEnvelope, type ClientIdentity, phases, protocols } from "../action/envelope.ts";
import type { Evaluation, PolicyVerdict } from "../action/evaluation.ts";
import { modes, severities } from "../action/policy.ts";
import type { Principal } from "../action/principal.ts";
import { Type } from "../config/type.ts";
import type { Ledger } from "../evidence/ledger.ts";
import type { AdminHandlers, AdminOperations } from "../operation/operation.ts";
import {
  anyText,
  closed,
  decisionParameter,
  enumOf,
  jsonResponse,
  nullable,
  points,
  ref,
  time,
  wholeNumber,
} from "../operation/shape.ts";
import {
  actionOf,
  checkOutput,
  type DescribedAction,
  type DescriptionParts,
  describedAction,
} from "../road/described-action.ts";
import { serverMembers } from "./explained-decision.ts";
import type { Explainer } from "./explainer.ts";

const explain = Type.Optional(Type.Boolean({ description: "true or false: whether to add the explanation" }));
const example = { tool: "read_file", target: "files", arguments: { path: "/etc/passwd" } };

/** Explanations of decisions, and evaluation of described actions. */
export const explainOperations = {
  explainDecision: {
    id: "admin.explain",
    method: "GET",
    path: "/admin/v1/decisions/:id/explanation",
    access: "evidence.disclose",
    tag: "policy",
    summary: "Explain a decision, by its id or its action's; the disclosure is recorded",
    params: { id: decisionParameter },
    response: jsonResponse("The explanation, as far as its sources are kept.", ref("Explanation")),
    errors: ["EVIDENCE_UNAVAILABLE"],
  },
  testAction: {
    id: "admin.test_action",
    method: "POST",
    path: "/admin/v1/test-action",
    access: "policy.test",
    tag: "policy",
    summary: "Evaluate one described action; nothing is dispatched, held or counted",
    body: {
      schema: closed({ ...describedAction.properties, explain }),
      example,
      required: true,
      limits: null,
    },
    response: jsonResponse("The evaluation.", Type.Object({ evaluation: ref("Evaluation") })),
    errors: ["ENVELOPE_BOUND", "EVIDENCE_UNAVAILABLE"],
  },
  simulate: {
    id: "admin.simulate",
    method: "POST",
    path: "/admin/v1/simulate",
    access: "policy.test",
    tag: "policy",
    summary: "Evaluate up to 100 described actions, each by itself",
    body: {
      schema: closed({
        actions: Type.Array(describedAction, {
          minItems: 1,
          maxItems: 100,
          description: "a list of 1 to 100 actions",
        }),
        explain,
      }),
      example: { actions: [example] },
      required: true,
      limits: null,
    },
    response: jsonResponse("An evaluation for each action.", Type.Object({ items: Type.Array(ref("Evaluation")) })),
    errors: ["ENVELOPE_BOUND", "EVIDENCE_UNAVAILABLE"],
  },
} as const satisfies AdminOperations;

const finding = Type.Object({
  rule: anyText,
  decision: ref("Decision"),
  message: anyText,
  severity: enumOf(severities),
  risk: points,
  mode: enumOf(modes),
  pointer: Type.Optional(anyText),
  approvals: Type.Optional(wholeNumber),
  session_risk: Type.Optional(points),
  taints: Type.Optional(Type.Array(anyText)),
  ticket: Type.Optional(anyText),
});

/** Members of a verdict that another server gave. */
const ofServer = {
  replayable: Type.Optional({
    ...Type.Literal(false),
    description: "false where another server decides, so that the same action may get another verdict; else absent",
  }),
  answer_digest: Type.Optional({ ...anyText, description: "`sha256:<hex>` over the bytes of that server's answer" }),
} satisfies TProperties;

const verdict = Type.Object({
  policy: ref("PolicyRef"),
  decision: enumOf(["allow", "review", "block", "abstain"]),
  risk: points,
  findings: Type.Array(finding),
  duration_us: wholeNumber,
  error: Type.Optional(anyText),
  ...ofServer,
});

const redaction = Type.Object({
  rule: anyText,
  pointer: anyText,
  start: wholeNumber,
  end: wholeNumber,
  replacement: anyText,
});

const outcomes = ["true", "false", "value", "error", "skipped", "budget_exceeded", "unavailable"];
const ruleOutcomes = ["held", "failed", "match", "when", "unless", "expired", "exception", "ticket", "budget_exceeded"];

const explainedRule = {
  rule: anyText,
  title: anyText,
  decision: ref("Decision"),
  severity: enumOf(severities),
  mode: enumOf(modes),
  file: anyText,
  line: wholeNumber,
  outcome: enumOf(ruleOutcomes),
  why: anyText,
  mismatches: Type.Array(Type.Object({ key: anyText, expected: Type.Array(anyText), got: anyText })),
  conditions: Type.Array(Type.Object({ name: anyText, expression: ref("ExplainedExpression") })),
} satisfies TProperties;

const explainedFinding = Type.Object({
  rule: anyText,
  decision: ref("Decision"),
  severity: enumOf(severities),
  mode: enumOf(modes),
  pointer: Type.Optional(anyText),
  message: nullable(anyText),
});

const explainedPolicy = Type.Object({
  policy: ref("PolicyRef"),
  mode: enumOf(modes),
  verdict: enumOf(["allow", "review", "block", "abstain"]),
  decided: Type.Boolean(),
  error: nullable(anyText),
  ...ofServer,
  standing: enumOf(["same", "changed", "gone"]),
  findings: Type.Array(explainedFinding),
  rules: Type.Array(ref("ExplainedRule")),
});

const explainedAction = Type.Object({
  id: anyText,
  protocol: enumOf(protocols),
  tool: anyText,
  target: anyText,
  capability: enumOf(capabilities),
  task: nullable(anyText),
  principal: anyText,
  session: anyText,
  session_state: nullable(Type.Object({ risk: wholeNumber, actions: wholeNumber, taints: Type.Array(anyText) })),
  ticket: nullable(Type.Object({ id: nullable(anyText), standing: enumOf(ticketStandings) })),
});

/** Components of the document. */
export const explainSchemas: Readonly<Record<string, TSchema>> = {
  Evaluation: Type.Object({
    id: anyText,
    phase: enumOf(phases),
    decision: ref("Decision"),
    by_default: Type.Boolean(),
    rules: Type.Array(anyText),
    risk: points,
    approvals: wholeNumber,
    verdicts: Type.Array(verdict),
    shadow: Type.Array(verdict),
    redactions: Type.Array(redaction),
    duration_us: wholeNumber,
    explanation: Type.Optional(ref("Explanation")),
  }),
  ExplainedExpression: Type.Object({
    text: anyText,
    outcome: enumOf(outcomes),
    value: nullable(anyText),
    parts: Type.Array(ref("ExplainedExpression")),
    more: Type.Boolean(),
  }),
  ExplainedRule: Type.Object(explainedRule),
  Explanation: Type.Object({
    id: anyText,
    time,
    phase: enumOf(phases),
    decision: ref("Decision"),
    by_default: Type.Boolean(),
    risk: points,
    rules: Type.Array(anyText),
    why: anyText,
    source: enumOf(["request", "memory", "approval", "evidence"]),
    values: enumOf(["shown", "redacted", "withheld", "unavailable"]),
    action: explainedAction,
    does: { ...Type.Array(anyText), description: "what the action does, by its typed facts" },
    policies: Type.Array(explainedPolicy),
    near: Type.Array(Type.Object({ ...explainedRule, policy: anyText })),
    notes: Type.Array(anyText),
  }),
};

interface ExplainSources extends DescriptionParts {
  readonly explainer: Explainer;
  readonly ledger: Pick<Ledger, "recordEvent">;
  /** Evaluates an action as policy would see it; leaves no evidence. */
  readonly evaluate: (
    action: ActionEnvelope,
  ) => Promise<{ readonly action: ActionEnvelope; readonly evaluation: Evaluation }>;
}

/**
 * Handlers that explain decisions and evaluate described actions as if the caller attempted them, along the same policy
 * chain, up to the evaluation. Nothing is dispatched, held or counted. Explanations contain values of arguments: each
 * request is recorded before it is answered.
 */
export function explainHandlers(sources: ExplainSources): AdminHandlers<typeof explainOperations> {
  const { explainer, ledger } = sources;

  function record({ tenant, id }: Principal, action: string, count: number): Promise<void> {
    return ledger.recordEvent(tenant, "admin", { action, principal: id, count });
  }

  return {
    explainDecision: async ({ tenant, id: principal }, { id }) => {
      const explanation = await explainer.explain(tenant, id);
      const { id: decision } = explanation;
      await ledger.recordEvent(tenant, "admin", { action: "decision.explain", principal, decision });
      return explanation;
    },
    testAction: async (caller, { body: { explain = false, ...action }, client }) => {
      checkOutput(action, "action");
      await record(caller, "policy.test_action", 1);
      return { evaluation: await evaluateDescribed(sources, caller, client, action, explain) };
    },
    simulate: async (caller, { body: { actions, explain = false }, client }) => {
      for (const [at, each] of actions.entries()) checkOutput(each, `actions/${at}`);
      await record(caller, "policy.simulate", actions.length);
      const items: object[] = [];
      for (const each of actions) items.push(await evaluateDescribed(sources, caller, client, each, explain));
      return { items };
    },
  };
}

async function evaluateDescribed(
  { evaluate, explainer, ...description }: ExplainSources,
  caller: Principal,
  client: ClientIdentity,
  described: DescribedAction,
  explain: boolean,
): Promise<object> {
  const { action, evaluation } = await evaluate(actionOf(described, caller, client, description));
  const view = viewEvaluation(evaluation);
  if (!explain) return view;
  // An explanation takes a while: yield to other requests first.
  await nextTurn();
  return { ...view, explanation: await explainer.explainRequest(action, evaluation) };
}

function viewEvaluation({ id, phase, decision, risk, approvals, ...rest }: Evaluation): object {
  return {
    id,
    phase,
    decision,
    by_default: rest.byDefault,
    rules: rest.determining.map(({ rule }) => rule),
    risk,
    approvals,
    verdicts: rest.verdicts.map(viewVerdict),
    shadow: rest.shadow.map(viewVerdict),
    redactions: rest.redactions,
    duration_us: rest.durationUs,
  };
}

function viewVerdict({ policy, decision, risk, findings, durationUs, error, ...rest }: PolicyVerdict): object {
  return {
    ...{ policy, decision, risk, findings, duration_us: durationUs },
    ...(error === undefined ? {} : { error }),
    ...serverMembers(rest.replayable, rest.answerDigest),
  };
}
