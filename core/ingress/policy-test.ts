import { setImmediate as nextTurn } from "node:timers/promises";
import type { Context } from "koa";
import type { Ledger } from "../evidence/ledger.ts";
import type { Evaluation, PolicyVerdict } from "../kernel/evaluation.ts";
import type { Principal } from "../kernel/principal.ts";
import type { Explainer } from "../pipeline/explainer.ts";
import type { Road } from "../pipeline/road.ts";
import type { AdminHandlers } from "./api/handler.ts";
import { agentIdentity } from "./client.ts";
import { actionOf, checkOutput, type DescribedAction, type DescriptionParts } from "./described-action.ts";

export interface PolicyTestParts extends DescriptionParts {
  readonly road: Pick<Road, "examine">;
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
  const { action, evaluation } = await parts.road.examine(actionOf(said, caller, agentIdentity(ctx.req), parts));
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
