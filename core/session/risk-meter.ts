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

const maxSessions = 10_000;

/**
 * Stops sessions that request too many reviews, because tired reviewers approve. Counts in memory, for the sessions that
 * requested one most recently; a restart resets the counts.
 */
export class ReviewFlood {
  readonly #options: ReviewFloodOptions;
  /** By session, the times of the reviews within the window. */
  readonly #times = new Map<string, readonly number[]>();

  constructor(options: ReviewFloodOptions) {
    this.#options = options;
  }

  /**
   * Counts a new review before it is recorded. Where it is one too many, the session is stopped when this returns, and the
   * caller refuses the action. Throws where the session cannot be stopped.
   */
  count(tenant: string, session: string): void {
    const { killSwitch, reviews, windowMs, elapsedMs } = this.#options;
    if (reviews === 0) return;
    const now = elapsedMs();
    const key = JSON.stringify([tenant, session]);
    const times = [...(this.#times.get(key) ?? []).filter((at) => now - at < windowMs), now];
    this.#times.delete(key);
    if (times.length <= reviews) this.#times.set(key, times);
    // Concurrent actions may each be one too many.
    else if (!killSwitch.isKilled(tenant, { scope: "session", subject: session })) this.#kill(tenant, session);
    forgetOldest(this.#times, maxSessions);
  }

  #kill(tenant: string, session: string): void {
    // A kill that cannot be recorded now is recorded later by the switch.
    const order = { scope: "session", subject: session, reason: "review_flood", by: null, note: null } as const;
    void this.#options.killSwitch.kill(tenant, order);
  }
}
