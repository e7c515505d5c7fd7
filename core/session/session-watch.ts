import type { BatchOperation, CommitHook } from "../action/commit-hook.ts";
import { type ActionContext, type ActionEnvelope, everyUpstream } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Participant, Participation, PendingDecision } from "../action/participant.ts";
import type { KillTarget } from "../kill/kill.ts";
import type { SessionLog } from "../kill/kill-store.ts";
import type { KillSwitch } from "../kill/kill-switch.ts";
import { type ReviewFlood, type RiskLimit, riskOf, taintsOf } from "./risk-meter.ts";
import type { SessionCache } from "./session-cache.ts";
import { headKey, type KnownTool, type SessionEntry, ToolTable } from "./session-entry.ts";

export interface SessionWatchObserver {
  /** Called when a session reaches the threshold while risk is in shadow mode. */
  wouldKill(): void;
  tainted(): void;
}

interface SessionWatchOptions {
  readonly cache: SessionCache;
  readonly log: SessionLog;
  readonly clock: Clock;
  readonly limit: RiskLimit;
  readonly killSwitch: Pick<KillSwitch, "ref" | "isKilled" | "kill">;
  readonly reviews: Pick<ReviewFlood, "count">;
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
  readonly #tools = new ToolTable();

  constructor(options: SessionWatchOptions) {
    this.#options = options;
    this.#cache = options.cache;
  }

  describe(action: ActionEnvelope): ActionContext {
    const { context, finish } = this.begin(action);
    finish();
    return context;
  }

  /** Counts the action as one that its session is attempting, until it is committed or finished. */
  begin(attempted: ActionEnvelope): SessionParticipation {
    const { tenant, session, principal } = attempted;
    const entry = this.#cache.open(tenant, session.id, principal.id);
    const known = this.#tools.find(attempted);
    const context = { session_state: entry.state(known, this.#options.clock()), history: entry.history };
    return joinSession(this.#options, entry, known, context);
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
    const entry = this.#cache.open(tenant, session.id, action.principal.id);
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
  applyOutputVerdict(action: ActionEnvelope, evaluation: Evaluation): CommitHook | undefined {
    const { tenant, session, principal } = action;
    const entry = this.#cache.open(tenant, session.id, principal.id);
    const points = riskOf(evaluation, this.#options.killSwitch.ref);
    if (points === 0) return undefined;
    raiseRisk(this.#options, entry, action, points);
    entry.pins++;
    return {
      operations: () => [this.#cache.put(tenant, session.id, entry)],
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
  release(tenant: string, { scope, subject }: KillTarget): CommitHook | undefined {
    const entry = scope === "session" ? this.#find(tenant, subject) : undefined;
    if (entry === undefined || entry === "damaged") return undefined;
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
}

/** One action while it is decided, counted as attempted by its session. */
export interface SessionParticipation extends Participation {
  readonly context: ActionContext;
  /**
   * Adds the risk of the evaluation to the session. Where the sum reaches the limit, or there are too many reviews, the
   * session is stopped when this returns. A repeated request and a used approval add no risk, because a person reviews
   * them; nor do actions of a stopped session. Throws TAINT_LIMIT where the session has no room for the taints.
   */
  applyVerdict(pending: PendingDecision): void;
  /** Adds the action to the history of its session, and returns the writes of the session. */
  operations(isDispatched: boolean): readonly BatchOperation[];
  finish(): void;
}

function joinSession(
  options: SessionWatchOptions,
  entry: SessionEntry,
  known: KnownTool,
  context: ActionContext,
): SessionParticipation {
  let judged: PendingDecision | undefined;
  let taints: readonly string[] = [];
  let isChanged = false;
  let isCounted = true;
  entry.pins++;
  entry.judged++;
  return {
    context,
    applyVerdict: (pending) => {
      const { action, evaluation, review } = pending;
      judged = pending;
      taints = taintsOf(action, evaluation);
      if (taints.length > 0) checkRoom(entry, action, taints);
      const isNewReview = review?.kind === "held" && review.isNew;
      if (review !== null && !isNewReview) return;
      const points = riskOf(evaluation, options.killSwitch.ref);
      isChanged ||= isNewReview || points > 0;
      if (isNewReview) {
        entry.countReview();
        options.reviews.count(action.tenant, action.session.id);
      }
      if (points > 0) raiseRisk(options, entry, action, points);
    },
    operations: (isDispatched) => {
      if (judged === undefined) throw new TypeError("operations: expected the verdict to be applied first");
      const { action, evaluation } = judged;
      // Lists over all upstreams are not part of the history.
      if (action.target !== everyUpstream) {
        const at = options.clock();
        entry.judged--;
        isCounted = false;
        entry.remember(action, known, evaluation.decision, isDispatched, at);
        if (isDispatched && taints.length > 0) entry.taint(taints, action, known, at);
        isChanged = true;
      }
      return isChanged ? [options.cache.put(action.tenant, action.session.id, entry)] : [];
    },
    finish: () => {
      if (isCounted) entry.judged--;
      entry.pins--;
    },
  };
}

/** Throws TAINT_LIMIT where a session has no room for further taints. */
function checkRoom(entry: SessionEntry, { session }: ActionEnvelope, names: readonly string[]): void {
  if (entry.taints.hasRoom(names)) return;
  throw new GatewayError("TAINT_LIMIT", `session \`${session.id}\`; an operator can reset it`);
}

/** Adds points to the risk of the session. Where it reaches the threshold, the session is stopped when this returns. */
function raiseRisk(options: SessionWatchOptions, { risk }: SessionEntry, action: ActionEnvelope, points: number): void {
  const { clock, limit, observer } = options;
  const now = clock();
  const before = risk.score(now);
  const score = risk.add(points, now);
  if (limit.killAt === 0 || score < limit.killAt) return;
  if (limit.mode === "enforce") killSession(options, action, score);
  else if (before < limit.killAt) observer.wouldKill();
}

function killSession(
  { killSwitch, limit }: SessionWatchOptions,
  { tenant, session }: ActionEnvelope,
  score: number,
): void {
  // Concurrent actions may each reach it.
  const target = { scope: "session", subject: session.id } as const;
  if (killSwitch.isKilled(tenant, target)) return;
  const note = `the risk score reached ${score} of ${limit.killAt}`;
  // A kill that cannot be recorded now is recorded later by the switch.
  void killSwitch.kill(tenant, { ...target, reason: "risk", by: null, note });
}
