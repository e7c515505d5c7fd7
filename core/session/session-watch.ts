import { findActionFacts } from "../kernel/action-fact.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Evaluation } from "../kernel/evaluation.ts";
import { deepFreeze, type JsonObject } from "../kernel/json.ts";
import type { Operation } from "../kernel/operation.ts";
import { noCompany, type RecordCompany } from "../kernel/record-company.ts";
import { taintsOf } from "./finding-effect.ts";
import type { KillTarget } from "./kill.ts";
import type { SessionLog } from "./kill-book.ts";
import { isStopped, raiseRisk } from "./risk-stop.ts";
import type { SessionBook } from "./session-book.ts";
import type { SessionEntry } from "./session-entry.ts";
import { headKey } from "./session-head.ts";
import { checkRoom, SessionVisit, type VisitParts } from "./session-visit.ts";
import { type KnownTool, ToolTable } from "./tool-table.ts";

export interface SessionWatchObserver {
  /** A session came to the threshold while risk is in shadow mode. */
  wouldKill(): void;
  tainted(): void;
  /** How many sessions are in memory. */
  watchedSessions(count: number): void;
}

export interface SessionWatchOptions extends Omit<VisitParts, "onWouldKill"> {
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
  weigh(action: ActionEnvelope, evaluation: Evaluation): RecordCompany {
    if (isStopped(this.#visits, evaluation)) return noCompany;
    const entry = this.#entryOf(action);
    if (!raiseRisk(this.#visits, entry, action, evaluation)) return noCompany;
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
      const forget: Operation = { type: "del", key: headKey(tenant, session) };
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
  release(tenant: string, { scope, subject }: KillTarget): RecordCompany {
    const entry = scope === "session" ? this.#find(tenant, subject) : undefined;
    if (entry === undefined || entry === "damaged") return noCompany;
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
