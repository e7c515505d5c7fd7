import { Counter, type Registry } from "prom-client";
import { type Evaluation, type WouldHave, wouldHave } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { forgetOldest } from "../action/recent-map.ts";

/** What one rule on trial came to, for one tenant, since this process started. */
export interface Trial extends WouldHave {
  readonly count: number;
  /** RFC 3339: of the last action it was about. */
  readonly last_time: string;
  /** The id of the decision it would have changed. */
  readonly last_decision: string;
}

interface TrialPage {
  readonly items: readonly Trial[];
  readonly next: string | null;
}

/** Rules remembered of one tenant: those that spoke last. */
const maxRules = 1_000;

/** What rules and policies in shadow mode would have done: in memory, as the evidence has the whole of it. */
export class TrialLog {
  readonly #counter: Counter<"kind" | "decision">;
  readonly #tenants = new Map<string, Map<string, Trial>>();

  constructor(registry: Registry) {
    this.#counter = new Counter({
      name: "gateway_would_have_total",
      help: "Times what is in shadow mode would have held or blocked an action or an answer, by kind of policy",
      labelNames: ["kind", "decision"],
      registers: [registry],
    });
  }

  /** Call once for each evaluation that goes on record. */
  note({ tenant, time }: Pick<ActionEnvelope, "tenant" | "time">, evaluation: Evaluation): void {
    for (const each of wouldHave(evaluation)) {
      const { decision, policy, rule } = each;
      this.#counter.inc({ kind: policy.kind, decision });
      const rules = this.#tenants.get(tenant) ?? new Map<string, Trial>();
      this.#tenants.set(tenant, rules);
      const key = keyOf(each);
      const count = (rules.get(key)?.count ?? 0) + 1;
      // Taken out first: what spoke last is forgotten last.
      rules.delete(key);
      rules.set(key, { rule, decision, policy, count, last_time: time, last_decision: evaluation.id });
      forgetOldest(rules, maxRules);
    }
  }

  /** By rule. `cursor` is the `next` of an earlier page. */
  list(tenant: string, { limit, cursor = "" }: { readonly limit: number; readonly cursor?: string }): TrialPage {
    const rules = this.#tenants.get(tenant) ?? new Map<string, Trial>();
    const keys = [...rules.keys()].filter((key) => key > cursor).sort();
    const shown = keys.slice(0, limit);
    const items = shown.map((key) => rules.get(key) as Trial);
    return { items, next: keys.length > limit ? (shown.at(-1) ?? null) : null };
  }
}

/** Fit for a cursor, and in the order of rules. */
function keyOf({ rule, decision, policy }: WouldHave): string {
  return [rule, decision, policy.kind, policy.name].map(encodeURIComponent).join("/");
}
