import type { Counter } from "prom-client";
import type { ActionEnvelope } from "../action/envelope.ts";
import { type Evaluation, type ShadowDecision, shadowDecisions } from "../action/evaluation.ts";
import { forgetOldest } from "../action/recent-map.ts";
import type { Subscriber } from "../action/subscriber.ts";
import type { MetricRegistry } from "./metric-registry.ts";

/** The decisions of one rule in shadow mode for one tenant since this process started. */
export interface ShadowLogEntry extends ShadowDecision {
  readonly count: number;
  /** RFC 3339: the time of the last action. */
  readonly last_time: string;
  /** The id of the decision it would have changed. */
  readonly last_decision: string;
}

interface ShadowLogPage {
  readonly items: readonly ShadowLogEntry[];
  readonly next: string | null;
}

/** Rules kept per tenant; the least recently matched is dropped first. */
const maxRules = 1_000;

/** Counts what rules and policies in shadow mode would have decided. In memory only: evidence holds the full record. */
export class ShadowLog implements Subscriber {
  readonly #counter: Counter<"kind" | "decision">;
  readonly #tenants = new Map<string, Map<string, ShadowLogEntry>>();

  constructor(registry: MetricRegistry) {
    this.#counter = registry.counter(
      "gateway_shadow_decisions_total",
      "Reviews and blocks by rules and policies in shadow mode, by kind of policy",
      "kind",
      "decision",
    );
  }

  /** Counts the shadow decisions of one evaluation. */
  recorded({ tenant, time }: Pick<ActionEnvelope, "tenant" | "time">, evaluation: Evaluation): void {
    for (const each of shadowDecisions(evaluation)) {
      const { decision, policy, rule } = each;
      this.#counter.inc({ kind: policy.kind, decision });
      const rules = this.#tenants.get(tenant) ?? new Map<string, ShadowLogEntry>();
      this.#tenants.set(tenant, rules);
      const key = keyOf(each);
      const count = (rules.get(key)?.count ?? 0) + 1;
      // Deleted first, so that the most recently matched rule is last in the map.
      rules.delete(key);
      rules.set(key, { rule, decision, policy, count, last_time: time, last_decision: evaluation.id });
      forgetOldest(rules, maxRules);
    }
  }

  /** One page of a tenant's rules, ordered by rule. `cursor` is the `next` of an earlier page. */
  list(tenant: string, { limit, cursor = "" }: { readonly limit: number; readonly cursor?: string }): ShadowLogPage {
    const rules = this.#tenants.get(tenant) ?? new Map<string, ShadowLogEntry>();
    const keys = [...rules.keys()].filter((key) => key > cursor).sort();
    const page = keys.slice(0, limit);
    const items = page.map((key) => rules.get(key) as ShadowLogEntry);
    return { items, next: keys.length > limit ? (page.at(-1) ?? null) : null };
  }
}

/** A key that sorts by rule and is safe in a cursor. */
function keyOf({ rule, decision, policy }: ShadowDecision): string {
  return [rule, decision, policy.kind, policy.name].map(encodeURIComponent).join("/");
}
