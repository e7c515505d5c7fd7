import { type BatchOperation, type CommitHook, noCommitHook } from "../action/commit-hook.ts";
import { type ActionContext, type ActionEnvelope, everyUpstream } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Evaluation } from "../action/evaluation.ts";
import { findActionFacts } from "../action/fact.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Participant, Participation, PendingDecision } from "../action/participant.ts";
import type { KillTarget } from "../kill/kill.ts";
import type { SessionLog } from "../kill/kill-store.ts";
import type { KillSwitch } from "../kill/kill-switch.ts";
import { type ReviewFlood, type RiskLimit, riskOf, taintsOf } from "./risk-meter.ts";
import type { SessionCache } from "./session-cache.ts";
import { type KnownTool, pastOf, type SessionEntry, ToolTable } from "./session-entry.ts";
import { headKey } from "./session-head.ts";

export interface SessionWatchObserver {
  /** Called when a session reaches the threshold while risk is in shadow mode. */
  wouldKill(): void;
  tainted(): void;
  /** Reports the number of sessions in memory. */
  watchedSessions(count: number): void;
}

interface SessionWatchOptions extends Omit<ParticipationOptions, "onWouldKill"> {
  readonly log: SessionLog;
  readonly observer: SessionWatchObserver;
}

/**
 * Tracks sessions over time: adds the state of its session to each action, and the action to the history. MCP calls and model
 * requests with the same label share one session.
 *
 * Where the store cannot be read, or the stored state of a session is damaged, every method throws or rejects: no action of
 * a session with unknown state may proceed.
 */
export class SessionWatch implements Participant {
  readonly name = "session";
  readonly #options: SessionWatchOptions;
  readonly #cache: SessionCache;
  readonly #shared: ParticipationOptions;
  readonly #tools = new ToolTable();

  constructor(options: SessionWatchOptions) {
    this.#options = options;
    this.#cache = options.cache;
    this.#shared = { ...options, onWouldKill: () => options.observer.wouldKill() };
  }

  describe(action: ActionEnvelope): ActionContext {
    return this.#contextOf(action, this.#entryOf(action), this.#tools.find(action));
  }

  /** Counts the action as one that its session is attempting, until it is committed or finished. */
  begin(attempted: ActionEnvelope): SessionParticipation {
    const entry = this.#entryOf(attempted);
    const tool = this.#tools.find(attempted);
    const context = this.#contextOf(attempted, entry, tool);
    const participation = new SessionParticipation(this.#shared, entry, tool, context);
    this.#options.observer.watchedSessions(this.#cache.size);
    return participation;
  }

  /** Returns true where the session has attempted anything, or is about to. */
  hasActed(tenant: string, session: string, principal: string): boolean {
    const { last, judged } = this.#cache.open(tenant, session, principal);
    return last > 0 || judged > 0;
  }

  /**
   * Adds the taints of an evaluation to the session: in force when this returns, durable and on record when the promise
   * resolves. Rejects with EVIDENCE_UNAVAILABLE where they cannot be recorded.
   */
  async recordTaints(action: ActionEnvelope, evaluation: Evaluation): Promise<void> {
    const names = taintsOf(action, evaluation);
    if (names.length === 0) return;
    const { tenant, session, id } = action;
    const entry = this.#entryOf(action);
    checkRoom(entry, action, names);
    const known = this.#tools.find(action);
    const isNew = entry.taint(names, action, known, this.#options.clock());
    if (isNew) this.#options.observer.tainted();
    const { target, tool } = known;
    await entry.taints.settle(names, (taints) => {
      const detail = { event: "tainted", session: session.id, taints, action: id, target, tool };
      return this.#record(tenant, session.id, entry, detail, () => undefined);
    });
  }

  /**
   * Adds the risk of an output evaluation to the session, before that is recorded. Where the sum reaches the limit, the
   * session is stopped when this returns.
   */
  applyOutputVerdict(action: ActionEnvelope, evaluation: Evaluation): CommitHook {
    if (isStopped(this.#shared, evaluation)) return noCommitHook;
    const entry = this.#entryOf(action);
    if (!raiseRisk(this.#shared, entry, action, evaluation)) return noCommitHook;
    entry.pins++;
    return {
      operations: () => [this.#cache.put(action.tenant, action.session.id, entry)],
      end: () => {
        entry.pins--;
      },
    };
  }

  /**
   * Clears risk and taints of a session, durable and on record when this resolves; `by`: the principal who ordered it. A
   * damaged session starts anew. Rejects with NOT_FOUND for an unknown session, and with EVIDENCE_UNAVAILABLE where the reset
   * cannot be recorded; nothing changes then.
   */
  async reset(tenant: string, session: string, by: string, reason: string): Promise<void> {
    const detail = { event: "reset", session, by, reason };
    const entry = this.#find(tenant, session);
    if (entry === undefined) throw new GatewayError("NOT_FOUND", "no such session");
    if (entry === "damaged") {
      const deletion: BatchOperation = { type: "del", key: headKey(tenant, session) };
      return this.#options.log.recordEvent(tenant, "session", detail, [deletion]);
    }
    let undo = (): void => undefined;
    try {
      // Later decisions are durable only if this record is.
      await this.#record(tenant, session, entry, detail, () => {
        undo = entry.reset();
      });
    } catch (error) {
      undo();
      throw error;
    }
  }

  /** Clears the risk of a released session: otherwise the next finding would stop it again. */
  release(tenant: string, { scope, subject }: KillTarget): CommitHook {
    const entry = scope === "session" ? this.#find(tenant, subject) : undefined;
    if (entry === undefined || entry === "damaged") return noCommitHook;
    entry.pins++;
    return {
      operations: () => {
        entry.risk.clear();
        return [this.#cache.put(tenant, subject as string, entry)];
      },
      end: () => {
        entry.pins--;
      },
    };
  }

  /** Returns undefined for an unknown session. Throws where the store cannot be read. */
  #find(tenant: string, session: string): SessionEntry | "damaged" | undefined {
    try {
      return this.#cache.find(tenant, session);
    } catch (cause) {
      if (GatewayError.from(cause).code === "SESSION_DAMAGED") return "damaged";
      throw cause;
    }
  }

  async #record(
    tenant: string,
    session: string,
    entry: SessionEntry,
    detail: JsonObject,
    change: () => void,
  ): Promise<void> {
    entry.pins++;
    try {
      await this.#options.log.recordEvent(tenant, "session", detail, () => {
        change();
        return [this.#cache.put(tenant, session, entry)];
      });
    } finally {
      entry.pins--;
    }
  }

  #entryOf({ tenant, session, principal }: ActionEnvelope): SessionEntry {
    return this.#cache.open(tenant, session.id, principal.id);
  }

  #contextOf(
    { protocol, phase, arguments: args }: ActionEnvelope,
    entry: SessionEntry,
    tool: KnownTool,
  ): ActionContext {
    const state = entry.state(tool, this.#options.clock());
    const context = { session_state: state, history: entry.history };
    // Model requests reach no host or path themselves, and listed tools have no arguments.
    return protocol === "model" || phase === "list" ? context : { facts: findActionFacts(args), ...context };
  }
}

interface ParticipationOptions extends RiskOptions {
  readonly cache: SessionCache;
  readonly reviews: Pick<ReviewFlood, "count">;
}

/** One action during its evaluation, which counts it as attempted by its session. */
export class SessionParticipation implements Participation {
  readonly context: ActionContext;
  readonly #options: ParticipationOptions;
  readonly #entry: SessionEntry;
  readonly #tool: KnownTool;
  #pending: PendingDecision | undefined;
  #taints: readonly string[];
  #isJudged: boolean;
  #isChanged: boolean;

  constructor(options: ParticipationOptions, entry: SessionEntry, tool: KnownTool, context: ActionContext) {
    this.context = context;
    this.#options = options;
    this.#entry = entry;
    this.#tool = tool;
    this.#taints = [];
    this.#isJudged = true;
    this.#isChanged = false;
    entry.pins++;
    entry.judged++;
  }

  /**
   * Adds the risk of the evaluation to the session. Where the sum reaches the limit, or there are too many reviews, the
   * session is stopped when this returns. A repeated request and a used approval add no risk, because a person reviews them;
   * nor do actions of a stopped session. Throws TAINT_LIMIT where the session has no room for the taints.
   */
  applyVerdict(pending: PendingDecision): void {
    const { action, evaluation, review } = pending;
    this.#pending = pending;
    this.#taints = taintsOf(action, evaluation);
    if (this.#taints.length > 0) checkRoom(this.#entry, action, this.#taints);
    const isNewReview = review?.kind === "held" && review.isNew;
    if ((review !== null && !isNewReview) || isStopped(this.#options, evaluation)) return;
    if (isNewReview) this.#countReview(action);
    if (raiseRisk(this.#options, this.#entry, action, evaluation)) this.#isChanged = true;
  }

  /** Adds the action to the history of its session, and returns the writes of the session. */
  operations(isDispatched: boolean): readonly BatchOperation[] {
    if (this.#pending === undefined) throw new TypeError("operations: expected the verdict to be applied first");
    const { action, evaluation } = this.#pending;
    // Lists over all upstreams are not part of the history.
    if (action.target !== everyUpstream) {
      const at = this.#options.clock();
      this.#endJudging();
      this.#entry.remember(this.#tool, pastOf(action, this.#tool, evaluation.decision, isDispatched, at));
      if (isDispatched && this.#taints.length > 0) this.#entry.taint(this.#taints, action, this.#tool, at);
      this.#isChanged = true;
    }
    return this.#isChanged ? [this.#options.cache.put(action.tenant, action.session.id, this.#entry)] : [];
  }

  finish(): void {
    this.#endJudging();
    this.#entry.pins--;
  }

  #endJudging(): void {
    if (this.#isJudged) this.#entry.judged--;
    this.#isJudged = false;
  }

  #countReview({ tenant, session }: ActionEnvelope): void {
    this.#entry.countReview();
    this.#isChanged = true;
    this.#options.reviews.count(tenant, session.id);
  }
}

/** Throws TAINT_LIMIT where a session has no room for further taints. */
function checkRoom(entry: SessionEntry, { session }: ActionEnvelope, names: readonly string[]): void {
  if (entry.taints.hasRoom(names)) return;
  throw new GatewayError("TAINT_LIMIT", `session \`${session.id}\`; an operator can reset it`);
}

interface RiskOptions {
  readonly clock: Clock;
  readonly limit: RiskLimit;
  readonly killSwitch: Pick<KillSwitch, "ref" | "isKilled" | "kill">;
  /** Called when a session reaches the threshold while risk is in shadow mode. */
  readonly onWouldKill: () => void;
}

/** Returns whether the kill switch blocked the action: actions of a stopped session add no risk. */
function isStopped({ killSwitch }: RiskOptions, { verdicts }: Evaluation): boolean {
  for (const { policy, decision } of verdicts) if (policy === killSwitch.ref) return decision === "block";
  return false;
}

/**
 * Adds the points of an evaluation to the risk of the session. Where it reaches the threshold, the session is stopped when
 * this returns. Returns whether there were any points.
 */
function raiseRisk(
  options: RiskOptions,
  { risk }: SessionEntry,
  action: ActionEnvelope,
  evaluation: Evaluation,
): boolean {
  const points = riskOf(evaluation);
  if (points === 0) return false;
  const { clock, limit, onWouldKill } = options;
  const now = clock();
  const before = risk.score(now);
  const score = risk.add(points, now);
  if (limit.killAt === 0 || score < limit.killAt) return true;
  if (limit.mode === "enforce") killSession(options, action, score);
  else if (before < limit.killAt) onWouldKill();
  return true;
}

function killSession({ killSwitch, limit }: RiskOptions, { tenant, session }: ActionEnvelope, score: number): void {
  // Concurrent actions may each reach it.
  const target = { scope: "session", subject: session.id } as const;
  if (killSwitch.isKilled(tenant, target)) return;
  const note = `the risk score reached ${score} of ${limit.killAt}`;
  // A kill that cannot be recorded now is recorded later by the switch.
  void killSwitch.kill(tenant, { ...target, reason: "risk", by: null, note });
}
