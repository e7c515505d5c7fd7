/** When a session's risk is too much. */
export interface RiskLimit {
  /** A session whose score reaches this is stopped. 0: none is. */
  readonly killAt: number;
  /** The score drains evenly: from the threshold to nothing in so long. */
  readonly windowMs: number;
  readonly mode: "enforce" | "shadow";
}

/** Beyond this a score rises no further: what was that bad drains like the rest. */
const most = 1_000;
/** What the score drains by where nothing is stopped for it. */
const usualScale = 80;

/** A score that rises by what a session does and drains with time. */
export class RiskMeter {
  #points: number;
  #at: number;

  constructor(points = 0, at = 0) {
    this.#points = points;
    this.#at = at;
  }

  /** The score at a time, whole points rounded up: a session with any risk left has some. A clock that goes back drains nothing. */
  score(now: number, limit: RiskLimit): number {
    return Math.ceil(this.#drained(now, limit));
  }

  add(points: number, now: number, limit: RiskLimit): void {
    this.#points = Math.min(this.#drained(now, limit) + points, most);
    this.#at = Math.max(now, this.#at);
  }

  /** Points, not drained, and when they were counted; what the constructor takes. */
  get state(): readonly [points: number, at: number] {
    return [this.#points, this.#at];
  }

  #drained(now: number, { killAt, windowMs }: RiskLimit): number {
    if (this.#points === 0) return 0;
    const lost = (Math.max(0, now - this.#at) * (killAt || usualScale)) / windowMs;
    return Math.max(0, this.#points - lost);
  }
}
