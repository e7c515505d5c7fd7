import type { ActionEnvelope } from "../action/envelope.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { JsonObject } from "../action/json.ts";
import type { Subscriber } from "../action/subscriber.ts";
import type { LiveFeed } from "./live-feed.ts";

/** Publishes each durable decision, and the risk of its session, to the live feed. */
export function liveSubscriber(feed: Pick<LiveFeed, "decide" | "publish">): Subscriber {
  return {
    decided: (action, evaluation, isDispatched) => {
      const { tenant } = action;
      feed.decide(tenant, evaluation.decision, evaluation.durationUs, decisionEvent(action, evaluation, isDispatched));
      if (hasRisk(action)) feed.publish(tenant, "risk", () => riskEvent(action));
    },
  };
}

/** The public data of a decision: no argument and no answer. */
function decisionEvent(action: ActionEnvelope, evaluation: Evaluation, isDispatched: boolean): JsonObject {
  const { principal, session, protocol, tool, target, capability, task } = action;
  return {
    id: evaluation.id,
    action: action.id,
    decision: evaluation.decision,
    dispatched: isDispatched,
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

function hasRisk({ session_state: state }: ActionEnvelope): boolean {
  return state !== undefined && (state.risk > 0 || state.taints.length > 0);
}

function riskEvent({ session, session_state: state }: ActionEnvelope): JsonObject {
  const { risk = 0, actions = 0, taints = [] } = state ?? {};
  return { session: session.id, label: session.label ?? null, risk, actions, taints: taints.map(({ name }) => name) };
}
