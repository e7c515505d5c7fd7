import type { Decision } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import type { Evaluation } from "../action/evaluation.ts";
import { type Clock, timeText } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { SessionScope } from "../action/principal.ts";
import type { SessionState } from "../action/session-state.ts";
import type { Subscriber } from "../action/subscriber.ts";
import { LiveAudience, type LiveChannel, type LiveEvent, type LiveListener } from "./live-audience.ts";
import type { Log } from "./log.ts";

const maxLatest = 200;

interface LiveFeedOptions {
  readonly clock: Clock;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  /** False removes session labels from events. */
  readonly showLabels: boolean;
  /** Gets a line for each decision, at `info`. */
  readonly log: Pick<Log, "info">;
}

/**
 * Publishes events to subscribers of the same tenant, and keeps each tenant's latest decisions. Publishing costs the same
 * whatever the number of subscribers: they get the events later, in rounds. The number of tenants is bounded by the
 * configuration.
 */
export class LiveFeed implements Subscriber {
  readonly #options: LiveFeedOptions;
  readonly #audiences = new Map<string, LiveAudience>();
  readonly #tenants = new Map<string, TenantDecisions>();

  constructor(options: LiveFeedOptions) {
    this.#options = options;
  }

  /** Returns the function that ends the subscription. */
  subscribe(tenant: string, channels: ReadonlySet<LiveChannel>, listener: LiveListener): () => void {
    const audience = this.#audiences.get(tenant) ?? new LiveAudience(this.#options.elapsedMs);
    this.#audiences.set(tenant, audience);
    return audience.add({ channels, listener });
  }

  /** Calls `make` only where there is a subscriber. */
  publish(tenant: string, channel: LiveChannel, make: () => JsonObject): void {
    const audience = this.#audiences.get(tenant);
    if (audience?.hasSubscriber(channel)) audience.publish(this.#makeEvent(channel, make()));
  }

  /**
   * Publishes and logs the decision about an action, and publishes the risk of its session where there is any. Counts the decision
   * for the channel `metrics` and keeps it as one of the latest 200. Ignores evaluations of outputs.
   */
  recorded(action: ActionEnvelope, evaluation: Evaluation, isDispatched: boolean): void {
    if (evaluation.phase === "output") return;
    const { tenant, principal, session, protocol, tool, target, capability, session_state: state } = action;
    const { id, decision, risk, determining, durationUs } = evaluation;
    this.#options.log.info(
      {
        tenant,
        decision,
        rule: determining[0]?.rule ?? null,
        risk,
        id,
        principal: principal.keyId,
        session: session.id,
        protocol,
        tool,
        target,
        capability,
        dispatched: isDispatched,
        duration_us: durationUs,
      },
      "action_decided",
    );
    const event = decisionEvent(action, evaluation, isDispatched, this.#options);
    const own = this.#tenants.get(tenant) ?? noDecisions();
    this.#tenants.set(tenant, own);
    own.counts[evaluation.decision]++;
    own.durations[own.total++ % maxDurations] = evaluation.durationUs;
    if (own.latest.push(event) > 2 * maxLatest) own.latest.splice(0, maxLatest);
    const audience = this.#audiences.get(tenant);
    if (audience?.hasSubscriber("decisions")) audience.publish(event);
    if (state === undefined || (state.risk <= 0 && state.taints.length === 0)) return;
    this.publish(tenant, "risk", () => riskEvent(action.session, state));
  }

  /** Returns the latest decisions, newest first. */
  latest(tenant: string): readonly LiveEvent[] {
    return (this.#tenants.get(tenant)?.latest ?? []).slice(-maxLatest).reverse();
  }

  /** Returns the data of the channel `metrics`: totals, and percentiles of the policy time of the last 512; null before the first. */
  summary(tenant: string): JsonObject {
    const { counts, durations, total } = this.#tenants.get(tenant) ?? noDecisions();
    const sorted = durations.toSorted((a, b) => a - b);
    const at = (share: number): number | null => sorted[Math.floor(share * (sorted.length - 1))] ?? null;
    return { ...counts, total, policy_p50_us: at(0.5), policy_p99_us: at(0.99) };
  }

  /** Publishes the channel `metrics` of each tenant with subscribers. */
  publishMetrics(): void {
    for (const tenant of this.#audiences.keys()) this.publish(tenant, "metrics", () => this.summary(tenant));
  }

  #makeEvent(channel: LiveChannel, data: JsonObject): LiveEvent {
    const { clock, showLabels } = this.#options;
    const shown = showLabels || data.label === undefined ? data : { ...data, label: null };
    return { channel, time: timeText(clock()), data: shown };
  }
}

const maxDurations = 512;

/** A tenant's decisions since the start. */
interface TenantDecisions {
  readonly counts: Record<Decision, number>;
  total: number;
  /** The durations of the last 512, in any order. */
  readonly durations: number[];
  readonly latest: LiveEvent[];
}

function noDecisions(): TenantDecisions {
  return { counts: { allow: 0, review: 0, block: 0 }, total: 0, durations: [], latest: [] };
}

/** The event of a decision: no argument and no answer. */
function decisionEvent(
  action: ActionEnvelope,
  evaluation: Evaluation,
  isDispatched: boolean,
  { clock, showLabels }: LiveFeedOptions,
): LiveEvent {
  const { principal, session, protocol, tool, target, capability, task } = action;
  const rules: string[] = [];
  for (const { rule } of evaluation.determining) rules.push(rule);
  const data = {
    id: evaluation.id,
    action: action.id,
    decision: evaluation.decision,
    dispatched: isDispatched,
    rules,
    by_default: evaluation.byDefault,
    risk: evaluation.risk,
    principal: principal.keyId,
    session: session.id,
    label: showLabels ? (session.label ?? null) : null,
    task,
    protocol,
    tool,
    target,
    capability,
    effect: action.facts?.effect ?? null,
    duration_us: evaluation.durationUs,
  };
  return { channel: "decisions", time: timeText(clock()), data };
}

function riskEvent({ id, label }: SessionScope, { risk, actions, taints }: SessionState): JsonObject {
  return { session: id, label: label ?? null, risk, actions, taints: taints.map(({ name }) => name) };
}
