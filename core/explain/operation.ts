import { setImmediate as nextTurn } from "node:timers/promises";
import type { Context } from "koa";
import { ticketStandings } from "../action/capability-ticket.ts";
import type { Evaluation, PolicyVerdict } from "../action/decision.ts";
import { type ActionEnvelope, capabilities, phases, protocols } from "../action/envelope.ts";
import type { JsonObject } from "../action/json.ts";
import { modes, severities } from "../action/policy.ts";
import type { Principal } from "../action/principal.ts";
import type { Ledger } from "../evidence/ledger.ts";
import { agentIdentity } from "../http/access.ts";
import type { AdminHandlers, Operations } from "../operation/operation.ts";
import { decisionId } from "../operation/request.ts";
import {
  answers,
  anyText,
  count,
  flag,
  list,
  nullable,
  object,
  oneOf,
  points,
  ref,
  texts,
  time,
} from "../operation/shape.ts";
import { actionOf, checkOutput, type DescribedAction, type DescriptionParts } from "../road/described-action.ts";
import type { Explainer } from "./explainer.ts";

const outcomes = ["true", "false", "value", "error", "skipped", "budget_exceeded", "unavailable"];
const ruleOutcomes = ["held", "failed", "match", "when", "unless", "expired", "exception", "ticket", "budget_exceeded"];

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
    values: oneOf(["shown", "redacted", "withheld", "unavailable"]),
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

interface ExplanationParts {
  readonly explainer: Explainer;
  readonly ledger: Pick<Ledger, "recordEvent">;
}

/**
 * The handler that says why something was decided in the caller's tenant. It shows values of arguments: that somebody
 * looked is on record before they are told.
 */
export function explanationHandlers({ explainer, ledger }: ExplanationParts): AdminHandlers<"admin.explain"> {
  return {
    "admin.explain": async (ctx, { tenant, id: principal }, asked) => {
      const explanation = await explainer.explain(tenant, asked.id);
      const { id: decision } = explanation;
      await ledger.recordEvent(tenant, "admin", { action: "decision.explain", principal, decision });
      ctx.body = explanation;
    },
  };
}

export interface PolicyTestParts extends DescriptionParts {
  /** Evaluates an action as policy would see it; leaves no evidence. */
  readonly evaluate: (
    action: ActionEnvelope,
  ) => Promise<{ readonly action: ActionEnvelope; readonly evaluation: Evaluation }>;
  readonly explainer: Explainer;
  readonly ledger: Ledger;
}

/**
 * Handlers that say what policy thinks of described actions, attempted by the caller: the same chain as for any other,
 * which ends at the evaluation; with `explain: true`, why. Nothing is dispatched, held or counted of a session; that
 * somebody asked is on record.
 */
export function policyTestHandlers(parts: PolicyTestParts): AdminHandlers<"admin.test_action" | "admin.simulate"> {
  return {
    "admin.test_action": async (ctx, caller, { body: { explain = false, ...action } }) => {
      checkOutput(action, "action");
      await record(parts, caller, "policy.test_action", 1);
      ctx.body = { evaluation: await evaluate(parts, ctx, caller, action, explain) };
    },
    "admin.simulate": async (ctx, caller, { body: { actions, explain = false } }) => {
      for (const [at, each] of actions.entries()) checkOutput(each, `actions/${at}`);
      await record(parts, caller, "policy.simulate", actions.length);
      const items = [];
      for (const each of actions) items.push(await evaluate(parts, ctx, caller, each, explain));
      ctx.body = { items };
    },
  };
}

function record({ ledger }: PolicyTestParts, { tenant, id }: Principal, action: string, count: number): Promise<void> {
  return ledger.recordEvent(tenant, "admin", { action, principal: id, count });
}

async function evaluate(
  parts: PolicyTestParts,
  ctx: Context,
  caller: Principal,
  said: DescribedAction,
  explain: boolean,
): Promise<object> {
  const { action, evaluation } = await parts.evaluate(actionOf(said, caller, agentIdentity(ctx.req), parts));
  const told = viewEvaluation(evaluation);
  if (!explain) return told;
  // An explanation takes a while: let others in between.
  await nextTurn();
  return { ...told, explanation: await parts.explainer.explainRequest(action, evaluation) };
}

/** As the admin port tells it. */
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

function viewVerdict({ policy, decision, risk, findings, durationUs, error }: PolicyVerdict): object {
  return { policy, decision, risk, findings, duration_us: durationUs, ...(error === undefined ? {} : { error }) };
}
