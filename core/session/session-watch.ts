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
  /** A session came to the threshold while risk is in shadow mode. */
  wouldKill(): void;
  tainted(): void;
  /** How many sessions are in memory. */
  watchedSessions(count: number): void;
}

interface SessionWatchOptions extends Omit<VisitParts, "onWouldKill"> {
  readonly log: SessionLog;
  readonly observer: SessionWatchObserver;
}

/**
 * Follows sessions over time: each action is shown to policy with its session's past, and becomes part of it. MCP calls and
 * model requests with the same label share one session.
 *
 * Where the store cannot be read, or the stored state of a session is damaged, every method throws or rejects: nothing is
 * known of that session, and nothing it asks for may be done.
 */
export class SessionWatch implements Participant {
  readonly name = "session";
  readonly #options: SessionWatchOptions;
  readonly #cache: SessionCache;
  readonly #visits: VisitParts;
  readonly #tools = new ToolTable();

  constructor(options: SessionWatchOptions) {
    this.#options = options;
    this.#cache = options.cache;
    this.#visits = { ...options, onWouldKill: () => options.observer.wouldKill() };
  }

  describe(action: ActionEnvelope): ActionContext {
    return this.#contextOf(action, this.#entryOf(action), this.#tools.find(action));
  }

  /** Counts the action as one that its session is attempting, until it is committed or finished. */
  begin(attempted: ActionEnvelope): SessionParticipation {
    const entry = this.#entryOf(attempted);
    const tool = this.#tools.find(attempted);
    const context = this.#contextOf(attempted, entry, tool);
    const participation = new SessionParticipation(this.#visits, entry, tool, context);
    this.#options.observer.watchedSessions(this.#cache.size);
    return participation;
  }

  /** Returns true where the session has attempted anything, or is about to. */
  hasActed(tenant: string, session: string, principal: string): boolean {
    const { last, judged } = this.#cache.open(tenant, session, principal);
    return last > 0 || judged > 0;
  }

  /**
   * Taints the session with what an action brought in: in force when this returns, durable and on record when the promise
   * resolves. Rejects with EVIDENCE_UNAVAILABLE where it cannot be recorded.
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
   * Adds the risk of a verdict about an answer to the session, before that is recorded. Where the sum reaches the limit, the
   * session is stopped when this returns.
   */
  applyOutputVerdict(action: ActionEnvelope, evaluation: Evaluation): CommitHook {
    if (isStopped(this.#visits, evaluation)) return noCommitHook;
    const entry = this.#entryOf(action);
    if (!raiseRisk(this.#visits, entry, action, evaluation)) return noCommitHook;
    entry.pins++;
    return {
      operations: () => [this.#cache.put(action.tenant, action.session.id, entry)],
      end: () => {
        entry.pins--;
      },
    };
  }

  /**
   * Takes risk and taints from a session, once that is durable and on record: `by` is who asked. A session whose state is
   * damaged begins anew. Rejects with NOT_FOUND for one that nothing is known of, and with EVIDENCE_UNAVAILABLE where it
   * cannot be recorded; then it stays as it is.
   */
  async reset(tenant: string, session: string, by: string, reason: string): Promise<void> {
    const detail = { event: "reset", session, by, reason };
    const entry = this.#find(tenant, session);
    if (entry === undefined) throw new GatewayError("NOT_FOUND", "no such session");
    if (entry === "damaged") {
      const forget: BatchOperation = { type: "del", key: headKey(tenant, session) };
      return this.#options.log.recordEvent(tenant, "session", detail, [forget]);
    }
    let undo = (): void => undefined;
    try {
      // Decisions behind this one are durable only if it is.
      await this.#record(tenant, session, entry, detail, () => {
        undo = entry.reset();
      });
    } catch (error) {
      undo();
      throw error;
    }
  }

  /** Takes its risk from a session that is released: otherwise the next finding would stop it again. */
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

  /** Undefined where nothing is known of it. Throws where the store cannot be read. */
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
    // A model request reaches nowhere by itself, and a listed tool has no arguments.
    return protocol === "model" || phase === "list" ? context : { facts: findActionFacts(args), ...context };
  }
}

interface VisitParts extends RiskParts {
  readonly cache: SessionCache;
  readonly reviews: Pick<ReviewFlood, "count">;
}

/** One action while it is decided: until then it counts as one that its session is attempting. */
export class SessionParticipation implements Participation {
  readonly context: ActionContext;
  readonly #parts: VisitParts;
  readonly #entry: SessionEntry;
  readonly #tool: KnownTool;
  #pending: PendingDecision | undefined;
  #taints: readonly string[] = [];
  #isJudged = true;
  #isChanged = false;

  constructor(parts: VisitParts, entry: SessionEntry, tool: KnownTool, context: ActionContext) {
    this.context = context;
    this.#parts = parts;
    this.#entry = entry;
    this.#tool = tool;
    entry.pins++;
    entry.judged++;
  }

  /**
   * Adds the risk of the verdict to the session. Where the sum reaches the limit, or there are too many reviews, the session
   * is stopped when this returns. A repeated question and a used approval add no risk: a person looks, or has looked, at
   * that. Nor does what a stopped session attempts. Throws TAINT_LIMIT where the session has no room for the taints.
   */
  applyVerdict(pending: PendingDecision): void {
    const { action, evaluation, review } = pending;
    this.#pending = pending;
    this.#taints = taintsOf(action, evaluation);
    checkRoom(this.#entry, action, this.#taints);
    const isNewReview = review?.kind === "held" && review.isNew;
    if ((review !== null && !isNewReview) || isStopped(this.#parts, evaluation)) return;
    if (isNewReview) this.#countReview(action);
    if (raiseRisk(this.#parts, this.#entry, action, evaluation)) this.#isChanged = true;
  }

  /** Makes the action part of its session's past and returns the writes of the session. */
  operations(isDispatched: boolean): readonly BatchOperation[] {
    if (this.#pending === undefined) throw new TypeError("operations: expected the verdict to be applied first");
    const { action } = this.#pending;
    // A question about what there is, is not an action.
    if (action.target !== everyUpstream) this.#remember(this.#pending, isDispatched);
    return this.#isChanged ? [this.#parts.cache.put(action.tenant, action.session.id, this.#entry)] : [];
  }

  finish(): void {
    this.#endJudging();
    this.#entry.pins--;
  }

  #remember({ action, evaluation: { decision } }: PendingDecision, dispatched: boolean): void {
    const at = this.#parts.clock();
    this.#endJudging();
    this.#entry.remember(this.#tool, pastOf(action, this.#tool, decision, dispatched, at));
    if (dispatched) this.#entry.taint(this.#taints, action, this.#tool, at);
    this.#isChanged = true;
  }

  #endJudging(): void {
    if (this.#isJudged) this.#entry.judged--;
    this.#isJudged = false;
  }

  #countReview({ tenant, session }: ActionEnvelope): void {
    this.#entry.countReview();
    this.#isChanged = true;
    this.#parts.reviews.count(tenant, session.id);
  }
}

/** Throws TAINT_LIMIT where a session cannot be tainted with all of that as well. */
function checkRoom(entry: SessionEntry, { session }: ActionEnvelope, names: readonly string[]): void {
  if (entry.taints.hasRoom(names)) return;
  throw new GatewayError("TAINT_LIMIT", `session \`${session.id}\`; an operator can reset it`);
}

interface RiskParts {
  readonly clock: Clock;
  readonly limit: RiskLimit;
  readonly killSwitch: Pick<KillSwitch, "ref" | "isKilled" | "kill">;
  /** Called when a session came to the threshold while risk is in shadow mode. */
  readonly onWouldKill: () => void;
}

/** Whether the kill switch has blocked it: what a stopped session attempts adds nothing to its risk. */
function isStopped({ killSwitch }: RiskParts, { verdicts }: Evaluation): boolean {
  return verdicts.some(({ policy, decision }) => policy === killSwitch.ref && decision === "block");
}

/**
 * Adds what policy found to the risk of the session, which is stopped when this returns where that is too much. Whether
 * there was anything to add.
 */
function raiseRisk(parts: RiskParts, { risk }: SessionEntry, action: ActionEnvelope, evaluation: Evaluation): boolean {
  const points = riskOf(evaluation);
  if (points === 0) return false;
  const { clock, limit, onWouldKill } = parts;
  const now = clock();
  const before = risk.score(now);
  const score = risk.add(points, now);
  if (limit.killAt === 0 || score < limit.killAt) return true;
  if (limit.mode === "enforce") stop(parts, action, score);
  else if (before < limit.killAt) onWouldKill();
  return true;
}

function stop({ killSwitch, limit }: RiskParts, { tenant, session }: ActionEnvelope, score: number): void {
  // Several may come to it at once.
  const target = { scope: "session", subject: session.id } as const;
  if (killSwitch.isKilled(tenant, target)) return;
  const note = `its risk came to ${score} of ${limit.killAt}`;
  // Where it cannot be recorded now, the switch tries again.
  void killSwitch.kill(tenant, { ...target, reason: "risk", by: null, note });
}
