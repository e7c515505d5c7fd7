import type { BatchOperation, CommitHook } from "../action/commit-hook.ts";
import { type ActionContext, type ActionEnvelope, everyUpstream } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Evaluation } from "../action/evaluation.ts";
import type { Clock } from "../action/id.ts";
import type { JsonObject } from "../action/json.ts";
import type { Participant, Participation, PendingDecision } from "../action/participant.ts";
import { untrustedTaint } from "../action/session-state.ts";
import type { KillTarget } from "../kill/kill.ts";
import type { SessionLog } from "../kill/kill-store.ts";
import type { KillSwitch } from "../kill/kill-switch.ts";
import {
  type Counted,
  type CountedList,
  type Counting,
  checkRoom,
  countDispatched,
  groupsOf,
  learnSecrets,
  putAll,
  renewAll,
  taintAll,
  writeAll,
} from "./counted.ts";
import { type ReviewFlood, type RiskLimit, riskOf, taintsOf } from "./risk-meter.ts";
import type { SessionCache } from "./session-cache.ts";
import { groupId, headKey, isGroup, type KnownTool, type SessionEntry, ToolTable } from "./session-entry.ts";
import type { ValueWatch } from "./value-watch.ts";

export interface SessionWatchObserver {
  /** Called when a session reaches the threshold while risk is in shadow mode. */
  wouldKill(): void;
  tainted(): void;
}

interface SessionWatchOptions {
  readonly cache: SessionCache;
  /** The sessions of each principal that count together. */
  readonly groups: SessionCache;
  readonly log: SessionLog;
  readonly clock: Clock;
  readonly limit: RiskLimit;
  readonly killSwitch: Pick<KillSwitch, "ref" | "isKilled" | "kill">;
  readonly reviews: Pick<ReviewFlood, "count">;
  readonly values: ValueWatch;
  readonly observer: SessionWatchObserver;
}

const maxStops = 64;
/** Taints of answers whose values are remembered. */
const untrustedTaints: ReadonlySet<string> = new Set([untrustedTaint, "injection"]);
const noValues: readonly string[] = [];
/** Age at which the stored time of a group's last action is renewed, so that a group in use is not deleted. */
const renewMs = 3_600_000;

/**
 * Tracks sessions over time: adds the state of its session to each action, and the action to the history. MCP calls and model
 * requests with the same label share one session.
 *
 * INVARIANT: a new label is no fresh start. Risk, taints, reviews and stops count for all sessions of a principal, and sessions
 * without a task are judged with them. Those that work on a task are judged with those of the same task.
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
    const { context, finish } = this.begin(action, false);
    finish();
    return context;
  }

  /** Counts the action as one that its session is attempting, until it is committed or finished. */
  begin(attempted: ActionEnvelope, isAttempt = true): SessionParticipation {
    const counted = this.#open(attempted);
    const [{ entry }, { entry: group }, all] = counted;
    const { secrets } = all?.entry ?? group;
    const known = this.#tools.find(attempted);
    const state = entry.state(known, this.#options.clock(), group);
    const named = group.values === null ? noValues : this.#options.values.find(attempted, group);
    const left = secrets === null || !isAttempt ? 0 : secrets.count(attempted);
    const found = named.length === 0 ? state : { ...state, untrusted_values: named };
    const shown = left === 0 ? found : { ...found, secret_left: left };
    return joinSession(this.#options, counted, known, { session_state: shown, history: entry.history });
  }

  #open({ tenant, session, principal, task }: Counting): CountedList {
    const { cache, groups } = this.#options;
    const own = { id: session.id, cache, entry: cache.open(tenant, session.id, principal.id) };
    const all = { id: principal.id, cache: groups, entry: groups.open(tenant, principal.id, principal.id) };
    if (task === null) return [own, all];
    const id = groupId(principal.id, task);
    return [own, { id, cache: groups, entry: groups.open(tenant, id, principal.id) }, all];
  }

  /** Returns true where the session has attempted anything, or is about to. */
  hasActed(tenant: string, session: string, principal: string): boolean {
    const { last, judged } = this.#cache.open(tenant, session, principal);
    return last > 0 || judged > 0;
  }

  /**
   * Adds the taints of an evaluation to the session: in force when this returns, durable and on record when the promise
   * resolves; so are the values that an untrusted answer names. Rejects with EVIDENCE_UNAVAILABLE where they cannot be recorded.
   */
  async recordTaints(action: ActionEnvelope, evaluation: Evaluation): Promise<void> {
    const { values, clock, observer } = this.#options;
    const names = taintsOf(action, evaluation);
    const isAnswer = evaluation.phase === "output" && evaluation.decision === "allow";
    const isKnown = isAnswer ? names.length === 0 : evaluation.phase === "input";
    if (isKnown && values.isOn) values.learnKnown(action, this.#open(action));
    if (names.length === 0) return;
    const counted = this.#open(action);
    checkRoom(counted, action, names);
    const known = this.#tools.find(action);
    if (taintAll(counted, names, action, known, clock())) observer.tainted();
    const { target, tool } = known;
    const record = (taints: readonly string[]): Promise<void> => {
      const detail = { event: "tainted", session: action.session.id, taints, action: action.id, target, tool };
      return this.#record(action.tenant, counted, detail, () => undefined);
    };
    if (isAnswer && names.includes("secret")) learnSecrets(action, counted);
    const source = names.find((name) => untrustedTaints.has(name));
    for (const each of counted) if (each !== undefined) each.entry.pins++;
    try {
      const isNew = isAnswer && source !== undefined && (await values.learnUntrusted(action, counted));
      await counted[0].entry.taints.settle(names, record, isNew ? source : undefined);
    } finally {
      for (const each of counted) if (each !== undefined) each.entry.pins--;
    }
  }

  /**
   * Adds the risk of an output evaluation to the session, before that is recorded. Where the sum reaches the limit, the
   * session is stopped when this returns.
   */
  applyOutputVerdict(action: ActionEnvelope, evaluation: Evaluation): CommitHook | undefined {
    const points = riskOf(evaluation, this.#options.killSwitch.ref);
    if (points === 0) return undefined;
    const counted = this.#open(action);
    raiseRisk(this.#options, counted, action, points);
    return writeAll(action.tenant, counted, () => undefined);
  }

  /**
   * Clears risk and taints of a session and of the groups it counts for, durable and on record when this resolves; other
   * sessions keep their own. `session`: also the id of a principal, for what all its sessions carry; `by`: the principal who
   * ordered it. A damaged state starts anew. Rejects with NOT_FOUND for an unknown session, and with EVIDENCE_UNAVAILABLE where
   * the reset cannot be recorded; nothing changes then.
   */
  async reset(tenant: string, session: string, by: string, reason: string): Promise<void> {
    const detail = { event: "reset", session, by, reason };
    const entry = this.#find(tenant, session);
    if (entry === undefined) throw new GatewayError("NOT_FOUND", "no such session");
    const counted: Counted[] = [];
    const deletions: BatchOperation[] = [];
    for (const id of entry === "damaged" ? [session] : [session, ...groupsOf(entry)]) {
      const found = this.#find(tenant, id);
      if (found === "damaged") deletions.push({ type: "del", key: headKey(tenant, id) });
      else if (found !== undefined) counted.push({ id, cache: this.#cacheOf(id), entry: found });
    }
    const undo: (() => void)[] = [];
    try {
      // Later decisions are durable only if this record is.
      await this.#record(
        tenant,
        counted,
        detail,
        () => {
          undo.push(...counted.map((each) => each.entry.reset()));
        },
        deletions,
      );
    } catch (error) {
      for (const each of undo) each();
      throw error;
    }
  }

  /**
   * Stops the sessions that count with a session that is stopped; in force when this returns, and as long as that session is
   * stopped. Returns what commits with the kill. A store that cannot be read prevents no kill.
   */
  stop(tenant: string, { scope, subject }: KillTarget): CommitHook | undefined {
    if (scope !== "session") return undefined;
    try {
      const entry = this.#find(tenant, subject);
      if (entry === undefined || entry === "damaged") return undefined;
      const [, ...groups] = this.#open({
        tenant,
        session: { id: subject },
        principal: { id: entry.principal },
        task: entry.task,
      });
      for (const each of groups) if (each !== undefined) this.#addStop(tenant, each.entry, subject);
      return writeAll(tenant, groups, () => undefined);
    } catch {
      return undefined;
    }
  }

  #addStop(tenant: string, group: SessionEntry, session: string): void {
    const others = group.stops.filter((each) => each !== session && this.#isKilled(tenant, each));
    // So many others are still stopped, and each of them stops the group.
    group.stops = others.length < maxStops ? [...others, session] : others;
  }

  /** Returns the stopped session that stops the others of its group, this one among them; undefined where there is none. */
  findStop({ tenant, session, principal, task }: Counting): string | undefined {
    const group = this.#options.groups.find(tenant, groupId(principal.id, task));
    return group?.stops.find((each) => each !== session.id && this.#isKilled(tenant, each));
  }

  /** Returns whether a session is stopped with another one of its principal. False for a session that never acted. */
  isStoppedWith(tenant: string, session: string, principal: string): boolean {
    const entry = this.#cache.peek(headKey(tenant, session));
    if (entry === undefined) return false;
    return (
      this.findStop({ tenant, session: { id: session }, principal: { id: principal }, task: entry.task }) !== undefined
    );
  }

  #isKilled(tenant: string, session: string): boolean {
    return this.#options.killSwitch.isKilled(tenant, { scope: "session", subject: session });
  }

  /**
   * Clears the risk of a released session and of the groups it counts for: otherwise the next finding would stop it again.
   */
  release(tenant: string, { scope, subject }: KillTarget): CommitHook | undefined {
    const entry = scope === "session" ? this.#find(tenant, subject) : undefined;
    if (entry === undefined || entry === "damaged" || subject === null) return undefined;
    const { principal, task } = entry;
    const counted = this.#open({ tenant, session: { id: subject }, principal: { id: principal }, task });
    return writeAll(tenant, counted, () => {
      for (const each of counted) each?.entry.risk.clear();
    });
  }

  #cacheOf(id: string): SessionCache {
    return isGroup(id) ? this.#options.groups : this.#cache;
  }

  /** Returns undefined for an unknown session. Throws where the store cannot be read. */
  #find(tenant: string, session: string): SessionEntry | "damaged" | undefined {
    try {
      return this.#cacheOf(session).find(tenant, session);
    } catch (cause) {
      if (GatewayError.from(cause).code === "SESSION_DAMAGED") return "damaged";
      throw cause;
    }
  }

  async #record(
    tenant: string,
    counted: readonly (Counted | undefined)[],
    detail: JsonObject,
    change: () => void,
    more: readonly BatchOperation[] = [],
  ): Promise<void> {
    const hook = writeAll(tenant, counted, change);
    try {
      await this.#options.log.recordEvent(tenant, "session", detail, () => [...hook.operations(), ...more]);
    } finally {
      hook.end();
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
  counted: CountedList,
  known: KnownTool,
  context: ActionContext,
): SessionParticipation {
  const [session, group, all] = counted;
  const { entry } = session;
  let judged: PendingDecision | undefined;
  let taints: readonly string[] = [];
  let isChanged = false;
  // The actions of a task are counted; of other groups, only what is to be remembered is written.
  let isGroupChanged = all !== undefined;
  let isCounted = true;
  entry.pins++;
  group.entry.pins++;
  if (all !== undefined) all.entry.pins++;
  entry.judged++;
  if (all !== undefined) group.entry.judged++;
  return {
    context,
    applyVerdict: (pending) => {
      const { action, evaluation, review } = pending;
      judged = pending;
      entry.task = action.task;
      taints = taintsOf(action, evaluation);
      isGroupChanged ||= taints.length > 0;
      if (taints.length > 0) checkRoom(counted, action, taints);
      const isNewReview = review?.kind === "held" && review.isNew;
      if (review !== null && !isNewReview) return;
      const points = riskOf(evaluation, options.killSwitch.ref);
      isChanged ||= isNewReview || points > 0;
      isGroupChanged ||= points > 0;
      if (isNewReview) {
        entry.countReview();
        options.reviews.count(action.tenant, action.session.id, groupsOf(entry));
      }
      if (points > 0) raiseRisk(options, counted, action, points);
    },
    operations: (isDispatched) => {
      if (judged === undefined) throw new TypeError("operations: expected the verdict to be applied first");
      const { action, evaluation } = judged;
      // Lists over all upstreams are not part of the history.
      if (action.target !== everyUpstream) {
        const at = options.clock();
        entry.judged--;
        if (all !== undefined) group.entry.judged--;
        isCounted = false;
        entry.remember(action, known, evaluation.decision, isDispatched, at);
        if (isDispatched && isGroupChanged) countDispatched(counted, taints, action, known, at);
        isChanged = true;
        isGroupChanged ||= group.entry.last > 0 && at - group.entry.last > renewMs;
        if (isGroupChanged) renewAll(counted, at);
      }
      if (isGroupChanged) return putAll(action.tenant, counted);
      return isChanged ? [session.cache.put(action.tenant, session.id, entry)] : [];
    },
    finish: () => {
      if (isCounted) entry.judged--;
      if (isCounted && all !== undefined) group.entry.judged--;
      entry.pins--;
      group.entry.pins--;
      if (all !== undefined) all.entry.pins--;
    },
  };
}

/**
 * Adds points to the risk of the session and of the groups it counts for. Where its own risk, or that of the group it is judged
 * with, reaches the threshold, the session is stopped when this returns.
 */
function raiseRisk(options: SessionWatchOptions, counted: CountedList, action: ActionEnvelope, points: number): void {
  const { clock, limit, observer } = options;
  const now = clock();
  const [session, group, all] = counted;
  const before = Math.max(session.entry.risk.score(now), group.entry.risk.score(now));
  const score = Math.max(session.entry.risk.add(points, now), group.entry.risk.add(points, now));
  all?.entry.risk.add(points, now);
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
