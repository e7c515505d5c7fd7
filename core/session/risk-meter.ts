import type { Evaluation } from "../action/decision.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import type { Finding } from "../action/policy.ts";
import { forgetOldest } from "../action/recent-map.ts";
import { untrustedTaint } from "../action/session-state.ts";
import type { KillSwitch } from "../kill/kill-switch.ts";

/** When a session's risk is too much. */
export interface RiskLimit {
  /** A session whose score comes to this is stopped. 0: none is. */
  readonly killAt: number;
  /** The score drains evenly: from the threshold to nothing in so long. */
  readonly windowMs: number;
  readonly mode: "enforce" | "shadow";
}

/** Points as they were when they were counted last, and when that was (milliseconds since 1970). */
export type CountedRisk = readonly [points: number, at: number];

/** Beyond this a score rises no further: what was that bad drains like the rest. */
const most = 1_000;
/** What the score drains by where nothing is stopped for it. */
const usualScale = 80;

/** A score that rises by what a session does and drains with time. */
export class RiskMeter {
  readonly #limit: RiskLimit;
  #points: number;
  #at: number;

  constructor(limit: RiskLimit, [points, at]: CountedRisk = [0, 0]) {
    this.#limit = limit;
    this.#points = points;
    this.#at = at;
  }

  /** The score at a time, in whole points, rounded up: a session with any risk left has some. A clock set back drains nothing. */
  score(now: number): number {
    return Math.ceil(this.#drained(now));
  }

  /** Returns the score it comes to. */
  add(points: number, now: number): number {
    this.#points = Math.min(this.#drained(now) + points, most);
    this.#at = Math.max(now, this.#at);
    return this.score(now);
  }

  clear(): void {
    this.#points = 0;
  }

  get counted(): CountedRisk {
    return [this.#points, this.#at];
  }

  #drained(now: number): number {
    const { killAt, windowMs } = this.#limit;
    const lost = (Math.max(0, now - this.#at) * (killAt || usualScale)) / windowMs;
    return Math.max(0, this.#points - lost);
  }
}

/** What an action adds to the risk of its session: of each finding what its rule says, else a tenth of its risk. Shadow adds nothing. */
export function riskOf({ verdicts }: Evaluation): number {
  return verdicts.reduce((sum, { findings }) => findings.reduce((total, each) => total + pointsOf(each), sum), 0);
}

/** What an action brings in that its session is to be tainted with. What nobody gets to see taints nobody. */
export function taintsOf(
  { untrusted }: ActionEnvelope,
  { phase, decision, verdicts, shadow }: Evaluation,
): readonly string[] {
  if (decision !== "allow" && phase === "output") return [];
  const found = [...verdicts, ...shadow].flatMap(({ findings }) => findings.flatMap(({ taints = [] }) => taints));
  const names = untrusted === true && phase === "output" ? [untrustedTaint, ...found] : found;
  return names.length === 0 ? names : [...new Set(names)];
}

function pointsOf({ mode, decision, risk, session_risk: own }: Finding): number {
  if (mode === "shadow") return 0;
  return own ?? (decision === "allow" ? 0 : risk / 10);
}

interface ReviewFloodOptions {
  readonly killSwitch: Pick<KillSwitch, "isKilled" | "kill">;
  /** New reviews that a session may ask for within the window; the next one stops it. 0: any number. */
  readonly reviews: number;
  readonly windowMs: number;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
}

const maxSessions = 10_000;

/**
 * Stops sessions that ask for too many reviews: whoever tires the reviewers gets one of them to say yes.
 * Counts in memory, of the sessions that asked last; a start begins anew.
 */
export class ReviewFlood {
  readonly #options: ReviewFloodOptions;
  /** By session, when it asked for each review that still counts. */
  readonly #asked = new Map<string, readonly number[]>();

  constructor(options: ReviewFloodOptions) {
    this.#options = options;
  }

  /**
   * Counts a new review, before anything is recorded of it. Where it is one too many, the session is stopped when this
   * returns, and the action that asked is to be refused. Throws where the session cannot be stopped.
   */
  count(tenant: string, session: string): void {
    const { killSwitch, reviews, windowMs, elapsedMs } = this.#options;
    if (reviews === 0) return;
    const now = elapsedMs();
    const key = JSON.stringify([tenant, session]);
    const asked = [...(this.#asked.get(key) ?? []).filter((at) => now - at < windowMs), now];
    this.#asked.delete(key);
    if (asked.length <= reviews) this.#asked.set(key, asked);
    // Several may be one too many at once.
    else if (!killSwitch.isKilled(tenant, { scope: "session", subject: session })) this.#stop(tenant, session);
    forgetOldest(this.#asked, maxSessions);
  }

  #stop(tenant: string, session: string): void {
    // Where it cannot be recorded now, the switch tries again.
    const order = { scope: "session", subject: session, reason: "review_flood", by: null, note: null } as const;
    void this.#options.killSwitch.kill(tenant, order);
  }
}
