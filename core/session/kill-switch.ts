import { contentDigest } from "../kernel/digest.ts";
import type { ActionEnvelope } from "../kernel/envelope.ts";
import { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Operation } from "../kernel/operation.ts";
import type { Mode, Policy, PolicyRef, Verdict } from "../kernel/policy.ts";
import type { Clock } from "../kernel/port.ts";
import { type Kill, killedDetail, killKey, killRange } from "./kill.ts";
import { KillIndex, type SessionStore } from "./kill-index.ts";

/** Where an event and what it tells of become durable together, or not at all. */
export interface SessionLog {
  recordEvent(tenant: string, kind: "session", detail: JsonObject, operations: readonly Operation[]): Promise<void>;
}

export interface KillSwitchOptions {
  readonly store: SessionStore;
  readonly log: SessionLog;
  readonly clock: Clock;
  /** A kill that could not be recorded is recorded again after so long; 1 s unless told. */
  readonly retryMs?: number;
  /** Called in the turn in which a session is stopped: cut off what it has in flight. */
  readonly onKilled: (kill: Kill) => void;
}

export interface KillPage {
  readonly items: readonly Kill[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

/** A stopped session whose last change is not durable yet. It is stopped whatever the store says. */
interface Held {
  readonly tenant: string;
  readonly kill: Kill;
  readonly isReleasing: boolean;
  /** Settles with the latest attempt to record the change. */
  attempt: Promise<void>;
}

const mostHeld = 10_000;
const usualRetryMs = 1_000;
const abstention: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });

/**
 * Which sessions are stopped: nothing that a stopped session asks for is dispatched until somebody releases it.
 *
 * INVARIANT: a kill is in force before it is recorded, a release only once it is durable. So a decision that is checked
 * in the turn in which it gets its place in the chain never stands there, dispatched, between a kill and its release.
 */
export class KillSwitch implements Policy {
  readonly ref: PolicyRef = Object.freeze({
    kind: "session",
    name: "kill-switch",
    version: "1",
    digest: contentDigest("kill-switch-v1"),
    signer: null,
  });
  readonly mode: Mode = "enforce";
  readonly #options: KillSwitchOptions;
  readonly #index: KillIndex;
  readonly #held = new Map<string, Held>();
  #closed = false;

  constructor(options: KillSwitchOptions) {
    this.#options = options;
    this.#index = new KillIndex(options.store);
  }

  /** What a stopped session has in flight is cut off when it is stopped. */
  readsOutput(): boolean {
    return false;
  }

  /** Blocks every action of a stopped session, in every phase; of others it says nothing. */
  evaluate(action: ActionEnvelope): Verdict {
    return this.isKilled(action.tenant, action.session.id) ? blocked(action.session.id) : abstention;
  }

  /** Throws SESSION_KILLED for an action of a stopped session. */
  check(action: ActionEnvelope): void {
    if (!this.isKilled(action.tenant, action.session.id)) return;
    throw new GatewayError("SESSION_KILLED", howToRelease(action.session.id));
  }

  /** Throws where the store cannot be read. */
  isKilled(tenant: string, session: string): boolean {
    const key = killKey(tenant, session);
    return this.#held.has(key) || this.#index.has(key);
  }

  /**
   * Stops a session, in force when this returns. The promise resolves once that is durable, and rejects with
   * EVIDENCE_UNAVAILABLE where it could not be recorded: it is in force nonetheless, and is recorded when that is
   * possible again. Throws SESSION_STATE for a session that is stopped already.
   */
  kill(tenant: string, order: Omit<Kill, "killed_at">): Promise<void> {
    const key = killKey(tenant, order.session);
    const before = this.#held.get(key);
    if (before === undefined ? this.#isStored(key) : !before.isReleasing) {
      throw conflict("killed", "it is stopped already");
    }
    if (this.#held.size >= mostHeld) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", `${mostHeld} stopped sessions wait to be recorded`);
    }
    const kill = { ...order, killed_at: new Date(this.#options.clock()).toISOString() };
    const attempt = this.hold(tenant, kill, before?.attempt);
    this.#options.onKilled(kill);
    return attempt;
  }

  /**
   * Lets a stopped session act again, once that is durable. Where it cannot be recorded, this rejects with
   * EVIDENCE_UNAVAILABLE and the session stays stopped. Rejects with SESSION_STATE for a session that is not stopped, or
   * whose last change is not durable yet.
   */
  async release(tenant: string, session: string, by: string, reason: string): Promise<void> {
    const key = killKey(tenant, session);
    const kill = await this.#index.read(tenant, session);
    if (this.#held.has(key)) {
      throw conflict("killed", "its last change is not recorded yet; try again");
    }
    if (kill === undefined || !this.#index.has(key)) {
      throw conflict("active", "it is not stopped");
    }
    const detail = { event: "released", session, by, reason };
    const attempt = this.#options.log.recordEvent(tenant, "session", detail, [{ type: "del", key }]);
    const held: Held = { tenant, kill, isReleasing: true, attempt };
    this.#held.set(key, held);
    try {
      await attempt;
    } catch (error) {
      // It may be on disk nonetheless. What is in force is recorded again, so that the next start finds it.
      if (this.#held.get(key) === held) this.hold(tenant, kill).catch(() => undefined);
      throw error;
    }
    this.#settle(key, held, false);
  }

  /** The stopped sessions of a tenant behind the session `after`, in the order of their ids. */
  async list(tenant: string, limit: number, after = ""): Promise<KillPage> {
    const kills = await this.#index.list(tenant, limit + 1, after);
    const { gt, lt } = killRange(tenant, after);
    for (const [key, { kill }] of this.#held) if (key > gt && key < lt) kills.set(key, kill);
    const items = [...kills.keys()].sort().map((key) => kills.get(key) as Kill);
    const page = items.slice(0, limit);
    return { items: page, next: items.length > limit ? (page.at(-1)?.session ?? null) : null };
  }

  /**
   * Puts a kill in force, and on record behind `after`; again and again until it is. The promise settles with the first
   * attempt.
   */
  hold(tenant: string, kill: Kill, after: Promise<void> = Promise.resolve()): Promise<void> {
    const key = killKey(tenant, kill.session);
    const held: Held = { tenant, kill, isReleasing: false, attempt: after };
    this.#held.set(key, held);
    held.attempt = after.catch(() => undefined).then(() => this.#record(key, held));
    held.attempt.catch(() => this.#recordLater(key, held));
    return held.attempt;
  }

  /** Records nothing any more. What is in force stays in force. */
  close(): void {
    this.#closed = true;
  }

  async #record(key: string, held: Held): Promise<void> {
    const entry: Operation = { type: "put", key, value: JSON.stringify(held.kill) };
    await this.#options.log.recordEvent(held.tenant, "session", killedDetail(held.kill), [entry]);
    this.#settle(key, held, true);
  }

  #recordLater(key: string, held: Held): void {
    const attempt = (): void => {
      if (this.#closed || this.#held.get(key) !== held) return;
      held.attempt = this.#record(key, held);
      held.attempt.catch(() => this.#recordLater(key, held));
    };
    setTimeout(attempt, this.#options.retryMs ?? usualRetryMs).unref();
  }

  /** The disk holds what `held` said, unless somebody has said something else since. */
  #settle(key: string, held: Held, isKilled: boolean): void {
    if (this.#held.get(key) !== held) return;
    this.#index.remember(key, isKilled);
    this.#held.delete(key);
  }

  /** A store that cannot be read keeps nobody from stopping a session. */
  #isStored(key: string): boolean {
    try {
      return this.#index.has(key);
    } catch {
      return false;
    }
  }
}

function blocked(session: string): Verdict {
  const finding = {
    rule: "session.killed",
    decision: "block",
    message: howToRelease(session),
    severity: "critical",
    risk: 100,
    mode: "enforce",
  } as const;
  return { decision: "block", findings: [finding], risk: 100 };
}

function conflict(state: "active" | "killed", detail: string): GatewayError {
  return new GatewayError("SESSION_STATE", `\`${state}\`: ${detail}`, { data: { state } });
}

function howToRelease(session: string): string {
  return `session \`${session}\` is stopped until an operator or admin of its tenant releases it`;
}
