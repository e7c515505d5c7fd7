import { Counter, Gauge, type Registry } from "prom-client";

type KillScope = "session" | "principal" | "tenant" | "gateway";
type KillReason = "operator" | "review_flood" | "risk";

/** All of them there from the start: a rate takes no notice of a first kill that brings its own series. */
const possibleKills: readonly (readonly [KillScope, KillReason])[] = [
  ["session", "operator"],
  ["session", "review_flood"],
  ["session", "risk"],
  ["principal", "operator"],
  ["tenant", "operator"],
  ["gateway", "operator"],
];

/** What is counted of sessions, on the registry of all metrics. */
export class SessionMetrics {
  readonly #kills: Counter<"scope" | "reason">;
  readonly #wouldKill: Counter;
  readonly #taints: Counter;
  readonly #watched: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#kills = new Counter({
      name: "gateway_kills_total",
      help: "What the kill switch stopped, by how much and why",
      labelNames: ["scope", "reason"],
      registers,
    });
    for (const [scope, reason] of possibleKills) this.#kills.inc({ scope, reason }, 0);
    this.#wouldKill = new Counter({
      name: "gateway_session_would_kill_total",
      help: "Times a session came to the risk it would be stopped for, were that not in shadow mode",
      registers,
    });
    this.#taints = new Counter({
      name: "gateway_session_taints_total",
      help: "Times a session was tainted with something it was not tainted with before",
      registers,
    });
    this.#watched = new Gauge({
      name: "gateway_watched_sessions",
      help: "Sessions whose last actions are in memory",
      registers,
    });
  }

  killed(scope: KillScope, reason: KillReason): void {
    this.#kills.inc({ scope, reason });
  }

  wouldKill(): void {
    this.#wouldKill.inc();
  }

  tainted(): void {
    this.#taints.inc();
  }

  watchedSessions(count: number): void {
    this.#watched.set(count);
  }
}
