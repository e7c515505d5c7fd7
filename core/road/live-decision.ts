import type { Evaluation } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import type { JsonObject } from "../action/json.ts";
import type { Gated } from "./authorize.ts";

/** A decision as people who watch are told of it, once it is durable. */
export function decisionNotice(action: ActionEnvelope, evaluation: Evaluation, gated: Gated): JsonObject {
  const { principal, session, protocol, tool, target, capability, task } = action;
  return {
    id: evaluation.id,
    action: action.id,
    decision: evaluation.decision,
    dispatched: gated.permission !== null,
    rules: evaluation.determining.map(({ rule }) => rule),
    by_default: evaluation.byDefault,
    risk: evaluation.risk,
    principal: principal.keyId,
    session: session.id,
    label: session.label ?? null,
    task,
    protocol,
    tool,
    target,
    capability,
    duration_us: evaluation.durationUs,
  };
}

export function hasRisk({ session_state: state }: ActionEnvelope): boolean {
  return state !== undefined && (state.risk > 0 || state.taints.length > 0);
}

/** How the session of an action stood when that was judged. */
export function riskNotice({ session, session_state: state }: ActionEnvelope): JsonObject {
  const { risk = 0, actions = 0, taints = [] } = state ?? {};
  return { session: session.id, label: session.label ?? null, risk, actions, taints: taints.map(({ name }) => name) };
}
