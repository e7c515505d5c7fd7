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
