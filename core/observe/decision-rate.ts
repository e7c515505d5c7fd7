import type { Decision } from "../kernel/decision.ts";
import type { JsonObject } from "../kernel/json.ts";

const mostDurations = 512;

/** How many decisions a tenant got since the start, and how long the last of them took. */
export class DecisionRate {
  readonly #counts: Record<Decision, number> = { allow: 0, review: 0, block: 0 };
  readonly #durations: number[] = [];
  #total = 0;

  count(decision: Decision, durationUs: number): void {
    this.#counts[decision]++;
    this.#durations[this.#total % mostDurations] = durationUs;
    this.#total++;
  }

  /** Totals, and percentiles of the policy time of the last 512; null before the first. */
  summary(): JsonObject {
    const sorted = this.#durations.toSorted((a, b) => a - b);
    const at = (share: number): number | null => sorted[Math.floor(share * (sorted.length - 1))] ?? null;
    return { ...this.#counts, total: this.#total, policy_p50_us: at(0.5), policy_p99_us: at(0.99) };
  }
}
