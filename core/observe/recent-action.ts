import type { ActionEnvelope } from "../action/envelope.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { PastAction } from "../action/session-state.ts";
import type { Subscriber } from "../action/subscriber.ts";

/** An action and what was decided about it. */
interface RecentDecision {
  /** The action as policies saw it, without outputs. */
  readonly action: ActionEnvelope;
  readonly evaluation: Evaluation;
}

interface RecentLimits {
  /** Over all tenants. */
  readonly decisions: number;
  /** Estimated memory over all tenants. */
  readonly bytes: number;
}

const usualLimits: RecentLimits = { decisions: 1_000, bytes: 8_388_608 };

/** Returns the limits; where no values may be stored, none are kept in memory either. */
export function recentLimits({ storeValues }: { readonly storeValues: boolean }): RecentLimits {
  return storeValues ? usualLimits : { decisions: 0, bytes: 0 };
}

/** Bytes of an action and its evaluation apart from their large parts; names are of bounded length. */
const frameBytes = 2_048;

/** One decision may use this fraction of the whole; larger ones are not kept. */
const maxShare = 16;

/**
 * The latest decisions with their actions, for explanations: in memory only. Beyond the limits, the tenant with the
 * largest share loses its oldest: no tenant's traffic evicts another tenant's decisions.
 */
export class RecentActions implements Subscriber {
  readonly #limits: RecentLimits;
  readonly #tenants = new Map<string, TenantDecisions>();
  readonly #history = new HistoryMeter();
  #count = 0;
  #bytes = 0;

  constructor(limits: RecentLimits) {
    this.#limits = limits;
  }

  /** Keeps an evaluation with its action; keeping it again changes nothing. */
  recorded(action: ActionEnvelope, evaluation: Evaluation): void {
    if (this.#limits.decisions === 0) return;
    const max = Math.floor(this.#limits.bytes / maxShare);
    const own = this.#tenants.get(action.tenant) ?? { kept: new Map<string, Kept>(), bytes: 0 };
    if (own.kept.has(evaluation.id)) return;
    // Only the parts whose size varies are measured.
    const parts: unknown[] = [action.arguments, action.continuation ?? null];
    for (const { findings } of evaluation.verdicts) if (findings.length > 0) parts.push(findings);
    for (const { findings } of evaluation.shadow) if (findings.length > 0) parts.push(findings);
    const bytes =
      frameBytes +
      (action.history === undefined ? 0 : this.#history.bytesOf(action.history)) +
      estimateBytes(parts, max);
    if (bytes > max) return;
    this.#tenants.set(action.tenant, own);
    own.kept.set(evaluation.id, { decided: { action, evaluation }, bytes });
    own.bytes += bytes;
    this.#bytes += bytes;
    this.#count += 1;
    while (this.#count > this.#limits.decisions || this.#bytes > this.#limits.bytes) this.#forgetOne(own);
  }

  /** Returns the decision with an id, or the input decision of the action with that id; undefined where it is not kept. */
  find(tenant: string, id: string): RecentDecision | undefined {
    const kept = this.#tenants.get(tenant)?.kept;
    if (kept === undefined) return undefined;
    const known = kept.get(id);
    if (known !== undefined) return known.decided;
    for (const [, { decided }] of kept)
      if (decided.action.id === id && decided.evaluation.phase === "input") return decided;
    return undefined;
  }

  /** Deletes the oldest decision of a tenant with more than its share, usually the one that was added to last. */
  #forgetOne(latest: TenantDecisions): void {
    const share = this.#bytes / this.#tenants.size;
    const own = latest.bytes >= share ? latest : this.#largest();
    for (const [id, { bytes }] of own.kept) {
      own.kept.delete(id);
      own.bytes -= bytes;
      this.#bytes -= bytes;
      this.#count -= 1;
      return;
    }
  }

  #largest(): TenantDecisions {
    return [...this.#tenants.values()].reduce((largest, each) => (each.bytes > largest.bytes ? each : largest));
  }
}

/**
 * Measures histories. Past actions are frozen and each is in the history of many actions, so each is measured once; the
 * sum counts it each time.
 */
class HistoryMeter {
  readonly #bytes = new WeakMap<readonly PastAction[] | PastAction, number>();

  bytesOf(history: readonly PastAction[]): number {
    const known = this.#bytes.get(history);
    if (known !== undefined) return known;
    let bytes = overhead;
    for (const past of history) {
      const own = this.#bytes.get(past) ?? estimateBytes([past], Number.POSITIVE_INFINITY);
      this.#bytes.set(past, own);
      bytes += own;
    }
    this.#bytes.set(history, bytes);
    return bytes;
  }
}

interface Kept {
  readonly decided: RecentDecision;
  readonly bytes: number;
}

interface TenantDecisions {
  /** In the order in which they came. */
  readonly kept: Map<string, Kept>;
  bytes: number;
}

/** Estimated bytes of an object, array or string apart from its contents. */
const overhead = 24;

/**
 * Estimates the memory of a list of JSON values in bytes; shared parts count each time. Stops beyond `max`, so that the
 * work is bounded.
 */
function estimateBytes(values: readonly unknown[], max: number): number {
  let weight = overhead;
  const open = [...values];
  for (let next = open.pop(); weight <= max && next !== undefined; next = open.pop()) {
    weight += overhead;
    if (typeof next === "string") weight += next.length * 2;
    if (typeof next !== "object" || next === null) continue;
    if (Array.isArray(next)) {
      for (const item of next as readonly unknown[]) open.push(item ?? null);
      continue;
    }
    for (const name in next) {
      weight += name.length;
      open.push((next as Readonly<Record<string, unknown>>)[name] ?? null);
    }
  }
  return weight;
}
