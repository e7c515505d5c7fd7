import { findActionFacts } from "../kernel/action-fact.ts";
import type { Decision } from "../kernel/decision.ts";
import { type ActionEnvelope, everyUpstream } from "../kernel/envelope.ts";
import type { Evaluation } from "../kernel/evaluation.ts";
import { deepFreeze } from "../kernel/json.ts";
import type { Operation } from "../kernel/operation.ts";
import type { Finding } from "../kernel/policy.ts";
import type { Clock } from "../kernel/port.ts";
import { type PastAction, untrustedTaint } from "../kernel/session-state.ts";
import type { SessionStore } from "./kill-index.ts";
import type { KillSwitch, SessionLog } from "./kill-switch.ts";
import type { ReviewFlood } from "./review-flood.ts";
import type { RiskLimit } from "./risk-meter.ts";
import { SessionBook } from "./session-book.ts";
import type { SessionEntry } from "./session-entry.ts";

export interface SessionWatchObserver {
  /** A session came to the threshold while risk is in shadow mode. */
  wouldKill(): void;
  tainted(): void;
  /** How many sessions are in memory. */
  watchedSessions(count: number): void;
}

export interface SessionWatchOptions {
  readonly store: SessionStore;
  readonly log: SessionLog;
  readonly clock: Clock;
  readonly limit: RiskLimit;
  /** Sessions kept in memory. */
  readonly capacity: number;
  readonly killSwitch: Pick<KillSwitch, "check" | "isKilled" | "kill">;
  readonly reviews: Pick<ReviewFlood, "count">;
  readonly observer: SessionWatchObserver;
}

/**
 * What sessions do over time: each action is shown to policy with its session's past, and becomes part of it. On the MCP
 * and the model road alike: who sends the same label has one session.
 */
export class SessionWatch {
  readonly #options: SessionWatchOptions;
  readonly #book: SessionBook;

  constructor(options: SessionWatchOptions) {
    this.#options = options;
    this.#book = new SessionBook(options.store, options.capacity);
  }

  /** The action as policy is to see it, where nothing will come of it. */
  view(action: ActionEnvelope): ActionEnvelope {
    return this.#see(action, this.#entryOf(action));
  }

  /** The same for an action that is about to be decided. It counts as one of its session's until `leave` is called. */
  enter(action: ActionEnvelope): Visit {
    const entry = this.#entryOf(action);
    const visit = new Visit(this.#options, this.#book, entry, this.#see(action, entry));
    this.#options.observer.watchedSessions(this.#book.size);
    return visit;
  }

  /**
   * Taints the session with what an action brought in, as far as it is not yet: in force when this returns, durable and
   * on record when the promise resolves. Rejects with EVIDENCE_UNAVAILABLE where it cannot be recorded.
   */
  async learn(action: ActionEnvelope, evaluation: Evaluation): Promise<void> {
    const names = taintsOf(action, evaluation);
    if (names.length === 0) return;
    const { target, tool, tenant, session, id } = action;
    const entry = this.#entryOf(action);
    const fresh = taint(entry, action, names, this.#options.clock());
    if (fresh.length === 0) return;
    this.#options.observer.tainted();
    const detail = { event: "tainted", session: session.id, taints: fresh, action: id, target, tool };
    await this.#record(tenant, session.id, entry, detail);
  }

  /** Takes risk and taints from a session; durable and on record when this resolves. Who asked is in `by`. */
  async reset(tenant: string, session: string, by: string, reason: string): Promise<void> {
    const entry = this.#book.renew(tenant, session, "");
    entry.reset();
    await this.#record(tenant, session, entry, { event: "reset", session, by, reason });
  }

  async #record(tenant: string, session: string, entry: SessionEntry, detail: SessionDetail): Promise<void> {
    entry.pins++;
    try {
      await this.#options.log.recordEvent(tenant, "session", detail, [this.#book.put(tenant, session, entry)]);
    } finally {
      entry.pins--;
    }
  }

  #entryOf({ tenant, session, principal }: ActionEnvelope): SessionEntry {
    return this.#book.open(tenant, session.id, principal.id);
  }

  #see(action: ActionEnvelope, entry: SessionEntry): ActionEnvelope {
    const { clock, limit } = this.#options;
    const reaches = action.protocol !== "model" && action.phase !== "list";
    const facts = reaches ? findActionFacts(action.arguments) : undefined;
    return deepFreeze({
      ...action,
      ...(facts === undefined ? {} : { facts }),
      session_state: entry.state(action, clock(), limit),
      history: entry.history,
    });
  }
}

type SessionDetail = Parameters<SessionLog["recordEvent"]>[2];

/** One action while it is decided. */
export class Visit {
  readonly action: ActionEnvelope;
  readonly #options: SessionWatchOptions;
  readonly #book: SessionBook;
  readonly #entry: SessionEntry;
  #evaluation: Evaluation | undefined;

  constructor(options: SessionWatchOptions, book: SessionBook, entry: SessionEntry, action: ActionEnvelope) {
    this.#options = options;
    this.#book = book;
    this.#entry = entry;
    this.action = action;
    entry.pins++;
    entry.judged++;
  }

  /**
   * Counts what policy said of the action, before that is recorded: its risk is the session's from now on, and where that
   * is too much, or the reviews are too many, the session is stopped when this returns. `asks`: a new review. A question
   * asked again and an approval that is used add no risk: a person looks, or has looked, at that.
   */
  count(evaluation: Evaluation, asks: "nothing" | "review" | "again"): void {
    this.#evaluation = evaluation;
    const { tenant, session } = this.action;
    if (asks === "again") return;
    if (asks === "review") {
      this.#entry.countReview();
      this.#options.reviews.count(tenant, session.id);
    }
    const points = evaluation.verdicts.reduce((sum, { findings }) => sum + riskOf(findings), 0);
    if (points > 0) this.#addRisk(points);
  }

  /** Throws SESSION_KILLED where the session was stopped since the action was judged. */
  check(): void {
    this.#options.killSwitch.check(this.action);
  }

  /** Makes the action part of its session's past; call when its decision gets its place. Returns what is written with it. */
  operations(dispatched: boolean): readonly Operation[] {
    const { action } = this;
    const { tenant, session, target } = action;
    if (this.#evaluation === undefined)
      throw new TypeError("operations: expected what was decided to be counted first");
    // Asking what there is, is not yet doing something.
    if (target === everyUpstream) return [];
    const at = this.#options.clock();
    this.#entry.remember(action, pastOf(action, this.#evaluation.decision, dispatched, at));
    if (dispatched) taint(this.#entry, action, taintsOf(action, this.#evaluation), at);
    return [this.#book.put(tenant, session.id, this.#entry)];
  }

  /** Call once, whatever came of it. */
  leave(): void {
    this.#entry.pins--;
    this.#entry.judged--;
  }

  #addRisk(points: number): void {
    const { clock, limit, killSwitch, observer } = this.#options;
    const { tenant, session } = this.action;
    const now = clock();
    const before = this.#entry.score(now, limit);
    const score = this.#entry.addRisk(points, now, limit);
    if (limit.killAt === 0 || score < limit.killAt) return;
    if (limit.mode === "shadow") {
      if (before < limit.killAt) observer.wouldKill();
    } else if (!killSwitch.isKilled(tenant, session.id)) {
      const note = `its risk came to ${score} of ${limit.killAt}`;
      // Where it cannot be recorded now, the switch tries again.
      void killSwitch.kill(tenant, { session: session.id, reason: "risk", by: null, note });
    }
  }
}

/** The names that the session was not tainted with yet. */
function taint(entry: SessionEntry, action: ActionEnvelope, names: readonly string[], at: number): readonly string[] {
  const { target, tool, id } = action;
  return names.filter((name) => entry.taint({ name, target, tool, action: id, at }));
}

/** What findings add to the risk of their session: what a rule says, else a tenth of its risk. Shadow adds nothing. */
function riskOf(findings: readonly Finding[]): number {
  return findings.reduce((sum, { mode, decision, risk, session_risk: own }) => {
    if (mode === "shadow") return sum;
    return sum + (own ?? (decision === "allow" ? 0 : risk / 10));
  }, 0);
}

/** What an action brings in that its session is to be tainted with. What nobody gets to see taints nobody. */
function taintsOf({ untrusted }: ActionEnvelope, { phase, decision, verdicts, shadow }: Evaluation): readonly string[] {
  if (decision !== "allow" && phase === "output") return [];
  const found = [...verdicts, ...shadow].flatMap(({ findings }) => findings.flatMap(({ taints = [] }) => taints));
  const names = untrusted === true && phase === "output" ? [untrustedTaint, ...found] : found;
  return names.length === 0 ? names : [...new Set(names)];
}

function pastOf(action: ActionEnvelope, decision: Decision, dispatched: boolean, at: number): PastAction {
  const { protocol, tool, target, capability, facts } = action;
  const [hosts, paths] = [facts?.hosts.slice(0, 4) ?? [], facts?.paths.slice(0, 4) ?? []];
  return deepFreeze({ at, protocol, tool, target, capability, decision, dispatched, hosts, paths });
}
