import type { ActionEnvelope } from "../action/envelope.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { PolicyRef } from "../action/policy.ts";
import { forgetOldest } from "../action/recent-map.ts";
import { untrustedTaint } from "../action/session-state.ts";
import type { KillSwitch } from "../kill/kill-switch.ts";

/** The risk at which a session is stopped. */
export interface RiskLimit {
  /** A session whose score reaches this is stopped. 0: none is. */
  readonly killAt: number;
  /** The score drains evenly, from the threshold to 0 in so long. */
  readonly windowMs: number;
  readonly mode: "enforce" | "shadow";
}

/** Points at the last change, and its time (milliseconds since 1970). */
export type CountedRisk = readonly [points: number, at: number];

const maxPoints = 1_000;
/** The threshold that sets the drain rate where no session is stopped. */
const defaultKillAt = 80;

/** The risk score of a session: it rises with findings and drains with time. */
export class RiskMeter {
  readonly #limit: RiskLimit;
  /** Changed by this meter alone. */
  counted: CountedRisk;

  constructor(limit: RiskLimit, counted: CountedRisk = [0, 0]) {
    this.#limit = limit;
    this.counted = counted;
  }

  /** The score at a time, rounded up to whole points, so that any risk left shows. A clock set back drains nothing. */
  score(now: number): number {
    return Math.ceil(this.#drained(now));
  }

  /** Adds points. Returns the new score. */
  add(points: number, now: number): number {
    this.counted = [Math.min(this.#drained(now) + points, maxPoints), Math.max(now, this.counted[1])];
    return this.score(now);
  }

  clear(): void {
    this.counted = [0, this.counted[1]];
  }

  #drained(now: number): number {
    const { killAt, windowMs } = this.#limit;
    const [points, at] = this.counted;
    const lost = (Math.max(0, now - at) * (killAt || defaultKillAt)) / windowMs;
    return Math.max(0, points - lost);
  }
}

/**
 * Sums the risk points of an evaluation: per finding those of its rule, else a tenth of its risk. Shadow adds nothing, nor
 * do actions of a stopped session: those that the policy `killSwitch` blocked.
 */
export function riskOf({ verdicts }: Evaluation, killSwitch: PolicyRef): number {
  let points = 0;
  for (const { policy, decision: stop, findings } of verdicts) {
    if (policy === killSwitch && stop === "block") return 0;
    for (const { mode, decision, risk, session_risk: own } of findings) {
      if (mode !== "shadow") points += own ?? (decision === "allow" ? 0 : risk / 10);
    }
  }
  return points;
}

/** Collects the taints that an action brings into its session. An output that is withheld taints nothing. */
export function taintsOf(
  { untrusted }: ActionEnvelope,
  { phase, decision, verdicts, shadow }: Evaluation,
): readonly string[] {
  if (decision !== "allow" && phase === "output") return [];
  const names = new Set<string>();
  if (untrusted === true && phase === "output") names.add(untrustedTaint);
  for (const { findings } of [...verdicts, ...shadow]) {
    for (const { taints = [] } of findings) for (const name of taints) names.add(name);
  }
  return [...names];
}

interface ReviewFloodOptions {
  readonly killSwitch: Pick<KillSwitch, "isKilled" | "kill">;
  /** New reviews that a session may request within the window; the next one stops it. 0: any number. */
  readonly reviews: number;
  readonly windowMs: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
}

const maxCounted = 20_000;

/**
 * Stops sessions that request too many reviews, because tired reviewers approve. Counts in memory, for the sessions and groups
 * of sessions that requested one most recently; a restart resets the counts.
 */
export class ReviewFlood {
  readonly #options: ReviewFloodOptions;
  /** By session or group, the times of the latest reviews within the window. */
  readonly #times = new Map<string, readonly number[]>();

  constructor(options: ReviewFloodOptions) {
    this.#options = options;
  }

  /**
   * Counts a new review before it is recorded, for its session and the groups of the session; the session is judged by the
   * first of these. Where the review is one too many, the session is stopped when this returns, and the caller refuses the
   * action. Throws where the session cannot be stopped.
   */
  count(tenant: string, session: string, [group, ...others]: readonly string[] = []): void {
    if (this.#options.reviews === 0) return;
    for (const each of others) this.#add(tenant, each);
    const judged = group === undefined ? [session] : [session, group];
    const isOver = judged.map((each) => this.#add(tenant, each)).includes(true);
    // A session that is released begins anew.
    if (isOver) for (const each of judged) this.#times.delete(JSON.stringify([tenant, each]));
    // Concurrent actions may each be one too many.
    const isStopped = isOver && this.#options.killSwitch.isKilled(tenant, { scope: "session", subject: session });
    if (isOver && !isStopped) this.#kill(tenant, session);
    forgetOldest(this.#times, maxCounted);
  }

  /** Returns whether there are more than the limit allows. */
  #add(tenant: string, id: string): boolean {
    const { reviews, windowMs, elapsedMs } = this.#options;
    const now = elapsedMs();
    const key = JSON.stringify([tenant, id]);
    const times = [...(this.#times.get(key) ?? []).filter((at) => now - at < windowMs), now];
    this.#times.delete(key);
    this.#times.set(key, times.slice(-reviews - 1));
    return times.length > reviews;
  }

  #kill(tenant: string, session: string): void {
    // A kill that cannot be recorded now is recorded later by the switch.
    const order = { scope: "session", subject: session, reason: "review_flood", by: null, note: null } as const;
    void this.#options.killSwitch.kill(tenant, order);
  }
}
