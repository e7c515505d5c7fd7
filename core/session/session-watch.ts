import { type BatchOperation, type CommitHook, noCommitHook } from "../action/commit-hook.ts";
import type { Evaluation } from "../action/decision.ts";
import { type ActionEnvelope, everyUpstream } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { findActionFacts } from "../action/fact.ts";
import type { Clock } from "../action/id.ts";
import { deepFreeze, type JsonObject } from "../action/json.ts";
import type { KillTarget } from "../kill/kill.ts";
import type { SessionLog } from "../kill/kill-store.ts";
import type { KillSwitch } from "../kill/kill-switch.ts";
import { type ReviewFlood, type RiskLimit, riskOf, taintsOf } from "./risk-meter.ts";
import type { SessionBook } from "./session-book.ts";
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
 * What sessions do over time: each action is shown to policy with its session's past, and becomes part of it. On the MCP
 * and the model road alike: who sends the same label has one session.
 *
 * Where the store cannot be read, or what it keeps of a session is damaged, every method throws or rejects: nothing is
 * known of that session, and nothing it asks for may be done.
 */
export class SessionWatch {
  readonly #options: SessionWatchOptions;
  readonly #book: SessionBook;
  readonly #visits: VisitParts;
  readonly #tools = new ToolTable();

  constructor(options: SessionWatchOptions) {
    this.#options = options;
    this.#book = options.book;
    this.#visits = { ...options, onWouldKill: () => options.observer.wouldKill() };
  }

  /** The action as policy is to see it, where nothing will come of it. */
  view(action: ActionEnvelope): ActionEnvelope {
    return this.#see(action, this.#entryOf(action), this.#tools.find(action));
  }

  /** The same for an action that is about to be decided. It counts as one of its session's until `leave` is called. */
  enter(action: ActionEnvelope): SessionVisit {
    const entry = this.#entryOf(action);
    const tool = this.#tools.find(action);
    const visit = new SessionVisit(this.#visits, entry, tool, this.#see(action, entry, tool));
    this.#options.observer.watchedSessions(this.#book.size);
    return visit;
  }

  /** Whether the session has attempted anything, or is about to. */
  hasActed(tenant: string, session: string, principal: string): boolean {
    const { last, judged } = this.#book.open(tenant, session, principal);
    return last > 0 || judged > 0;
  }

  /**
   * Taints the session with what an action brought in: in force when this returns, durable and on record when the promise
   * resolves. Rejects with EVIDENCE_UNAVAILABLE where it cannot be recorded.
   */
  async learn(action: ActionEnvelope, evaluation: Evaluation): Promise<void> {
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
   * Counts what policy said of an action's answer, once, before that is recorded: its risk is the session's from now on,
   * and where that is too much, the session is stopped when this returns.
   */
  weigh(action: ActionEnvelope, evaluation: Evaluation): CommitHook {
    if (isStopped(this.#visits, evaluation)) return noCommitHook;
    const entry = this.#entryOf(action);
    if (!raiseRisk(this.#visits, entry, action, evaluation)) return noCommitHook;
    entry.pins++;
    return {
      operations: () => [this.#book.put(action.tenant, action.session.id, entry)],
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
        return [this.#book.put(tenant, subject as string, entry)];
      },
      end: () => {
        entry.pins--;
      },
    };
  }

  /** Undefined where nothing is known of it. Throws where the store cannot be read. */
  #find(tenant: string, session: string): SessionEntry | "damaged" | undefined {
    try {
      return this.#book.find(tenant, session);
    } catch (cause) {
      if (GatewayError.from(cause).code === "SESSION_STATE") return "damaged";
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
        return [this.#book.put(tenant, session, entry)];
      });
    } finally {
      entry.pins--;
    }
  }

  #entryOf({ tenant, session, principal }: ActionEnvelope): SessionEntry {
    return this.#book.open(tenant, session.id, principal.id);
  }

  #see(action: ActionEnvelope, entry: SessionEntry, tool: KnownTool): ActionEnvelope {
    const reaches = action.protocol !== "model" && action.phase !== "list";
    const facts = reaches ? findActionFacts(action.arguments) : undefined;
    return deepFreeze({
      ...action,
      ...(facts === undefined ? {} : { facts }),
      session_state: entry.state(tool, this.#options.clock()),
      history: entry.history,
    });
  }
}

interface VisitParts extends RiskParts {
  readonly book: SessionBook;
  readonly killSwitch: RiskParts["killSwitch"] & Pick<KillSwitch, "check">;
  readonly reviews: Pick<ReviewFlood, "count">;
}

/** One action while it is decided. Until it is, it counts as one of its session's. */
export class SessionVisit {
  /** As policy is to see it. */
  readonly action: ActionEnvelope;
  readonly #parts: VisitParts;
  readonly #entry: SessionEntry;
  readonly #tool: KnownTool;
  #evaluation: Evaluation | undefined;
  #taints: readonly string[] = [];
  #isJudged = true;
  #isChanged = false;

  constructor(parts: VisitParts, entry: SessionEntry, tool: KnownTool, action: ActionEnvelope) {
    this.action = action;
    this.#parts = parts;
    this.#entry = entry;
    this.#tool = tool;
    entry.pins++;
    entry.judged++;
  }

  /**
   * Counts what policy said of the action, before that is recorded: its risk is the session's from now on, and where that
   * is too much, or the reviews are too many, the session is stopped when this returns. `asks`: a new review. A question
   * asked again and an approval that is used add no risk: a person looks, or has looked, at that. Nor does what a stopped
   * session attempts. Throws SESSION_STATE where the session would be tainted with more than can be remembered.
   */
  count(evaluation: Evaluation, asks: "nothing" | "review" | "again"): void {
    this.#evaluation = evaluation;
    this.#taints = taintsOf(this.action, evaluation);
    checkRoom(this.#entry, this.action, this.#taints);
    if (asks === "again" || isStopped(this.#parts, evaluation)) return;
    if (asks === "review") this.#countReview();
    if (raiseRisk(this.#parts, this.#entry, this.action, evaluation)) this.#isChanged = true;
  }

  /** Throws SESSION_KILLED where the session was stopped since the action was judged. */
  check(): void {
    this.#parts.killSwitch.check(this.action);
  }

  /** Makes the action part of its session's past; call when its decision gets its place. Returns what is written with it. */
  operations(dispatched: boolean): readonly BatchOperation[] {
    const { action } = this;
    if (this.#evaluation === undefined)
      throw new TypeError("operations: expected what was decided to be counted first");
    // Asking what there is, is not yet doing something.
    if (action.target !== everyUpstream) this.#remember(this.#evaluation, dispatched);
    return this.#isChanged ? [this.#parts.book.put(action.tenant, action.session.id, this.#entry)] : [];
  }

  /** Call once, whatever came of it. */
  leave(): void {
    this.#endJudging();
    this.#entry.pins--;
  }

  #remember({ decision }: Evaluation, dispatched: boolean): void {
    const { action } = this;
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

  #countReview(): void {
    this.#entry.countReview();
    this.#isChanged = true;
    this.#parts.reviews.count(this.action.tenant, this.action.session.id);
  }
}

/** Throws SESSION_STATE where a session cannot be tainted with all of that as well. */
function checkRoom(entry: SessionEntry, { session }: ActionEnvelope, names: readonly string[]): void {
  if (entry.taints.hasRoom(names)) return;
  throw new GatewayError(
    "SESSION_STATE",
    `session \`${session.id}\` has more taints than can be remembered; an operator can reset it`,
  );
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
