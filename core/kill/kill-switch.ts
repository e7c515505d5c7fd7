import type { AbstractBatchOptions } from "abstract-level";
import { contentDigest } from "../action/canonical-json.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { Mode, Policy, PolicyRef, Verdict } from "../action/policy.ts";
import { type Kill, type KillOrder, type KillTarget, killKey, killPrefix, wholeGateway } from "./kill.ts";
import {
  alreadyStopped,
  conflict,
  KillBook,
  type KillBookOptions,
  type KillPage,
  notRecordedYet,
  notStopped,
  type PageOf,
  type SessionStore,
} from "./kill-store.ts";

interface KillSwitchOptions extends KillBookOptions {
  readonly clock: Clock;
  /** The tenants whose evidence is not refused. */
  readonly tenants: () => readonly string[];
  /** Called in the turn of a kill, with the tenant it was ordered in: cut off what is in flight of what it stops. */
  readonly onKilled: (tenant: string, kill: Kill) => void;
}

const wholeTenant = { scope: "tenant", subject: null } as const;
const abstention: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });

/**
 * What is stopped: a session, a principal, a tenant, or everything. Nothing that it covers is dispatched until somebody
 * releases it.
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
  readonly #book: KillBook;
  readonly #gateway: GatewayStop;

  constructor(options: KillSwitchOptions) {
    this.#options = options;
    this.#book = new KillBook(options);
    this.#gateway = new GatewayStop(this.#book, options.tenants);
  }

  /** What is stopped has nothing in flight any more: that is cut off when it is stopped. */
  readsOutput(): boolean {
    return false;
  }

  /** Blocks every action of what is stopped, in every phase; of others it says nothing. */
  evaluate(action: ActionEnvelope): Verdict {
    const stop = this.#stopOf(action);
    return stop === null ? abstention : blocked(action.tenant, stop);
  }

  /** Throws SESSION_KILLED for an action of what is stopped. */
  check(action: ActionEnvelope): void {
    const stop = this.#stopOf(action);
    if (stop !== null) throw killedError(action.tenant, stop);
  }

  /** Whether this very target is stopped; what it belongs to may be. Throws where the store cannot be read. */
  isKilled(tenant: string, target: KillTarget): boolean {
    return target.scope === "gateway" ? this.#gateway.isOn : this.#book.has(tenant, target);
  }

  /**
   * Stops something in a tenant, or everything, in force when this returns. The promise resolves once that is durable,
   * and rejects with EVIDENCE_UNAVAILABLE where it could not be recorded: it is in force nonetheless, and is recorded
   * when that is possible again. Throws SESSION_STATE for what is stopped already.
   */
  kill(tenant: string, order: KillOrder): Promise<void> {
    const kill: Kill = { ...order, killed_at: new Date(this.#options.clock()).toISOString() };
    const recorded = kill.scope === "gateway" ? this.#gateway.kill(kill) : this.#book.kill(tenant, kill);
    this.#options.onKilled(tenant, kill);
    return recorded;
  }

  /**
   * Lets it act again, once that is durable. Where it cannot be recorded, this rejects with EVIDENCE_UNAVAILABLE and it
   * stays stopped. Rejects with SESSION_STATE for what is not stopped, or whose last change is not durable yet.
   */
  async release(tenant: string, target: KillTarget, by: string, reason: string): Promise<void> {
    if (target.scope === "gateway") return this.#gateway.release(by, reason);
    return this.#book.release(tenant, target, by, reason);
  }

  /** What is stopped in a tenant, in an order that stays. */
  list(tenant: string, page: PageOf): Promise<KillPage> {
    return this.#book.list(tenant, page);
  }

  /** Puts in force again what the store has an entry of, and what the tenant's chain tells of beside that. */
  async restore(tenant: string, told: Iterable<Kill>): Promise<void> {
    await moveFormerKills(this.#options.store, tenant);
    for (const kill of told) {
      if (!this.#book.has(tenant, kill)) this.#book.hold(tenant, kill).catch(() => undefined);
    }
    await this.#book.survey(tenant);
    const all = await this.#book.find(tenant, wholeGateway);
    if (all !== undefined) this.#gateway.restore(all);
  }

  /** Takes note of tenants that came since: a stop of the whole gateway is on their record too. */
  async welcomeTenants(): Promise<void> {
    this.#gateway.cover();
    await Promise.all(this.#options.tenants().map((tenant) => this.#book.survey(tenant)));
  }

  /** Records nothing any more. What is in force stays in force. */
  close(): void {
    this.#book.close();
  }

  /** The widest of the kills that cover an action; on the road of every action. */
  #stopOf({ tenant, principal, session }: ActionEnvelope): KillTarget | null {
    if (this.#gateway.isOn) return wholeGateway;
    if (this.#book.isClear(tenant)) return null;
    if (this.#book.has(tenant, wholeTenant)) return wholeTenant;
    const targets = [
      { scope: "principal", subject: principal.id },
      { scope: "session", subject: session.id },
    ] as const;
    return targets.find((target) => this.#book.has(tenant, target)) ?? null;
  }
}

/** What becomes of a request that is in flight, or on its way into the chain, when it is stopped. */
export function killedError(tenant: string, target: KillTarget): GatewayError {
  return new GatewayError("SESSION_KILLED", howToRelease(tenant, target));
}

function blocked(tenant: string, target: KillTarget): Verdict {
  const finding = {
    rule: `${target.scope}.killed`,
    decision: "block",
    message: howToRelease(tenant, target),
    severity: "critical",
    risk: 100,
    mode: "enforce",
  } as const;
  return { decision: "block", findings: [finding], risk: 100 };
}

function howToRelease(tenant: string, { scope, subject }: KillTarget): string {
  if (scope === "gateway") return "the whole gateway is stopped until an admin of the tenant that runs it releases it";
  const named = `${scope} \`${subject ?? tenant}\``;
  return `${named} is stopped until an operator or admin of ${scope === "tenant" ? "it" : "its tenant"} releases it`;
}

/**
 * The stop of every tenant at once: one kill, on the record of each.
 *
 * INVARIANT: it is in force for all, tenants that never acted among them, until its release is durable for all.
 */
class GatewayStop {
  readonly #book: KillBook;
  /** Those whose evidence can be written: others cannot act anyway. */
  readonly #tenants: () => readonly string[];
  #kill: Kill | null = null;
  #isReleasing = false;

  constructor(book: KillBook, tenants: () => readonly string[]) {
    this.#book = book;
    this.#tenants = tenants;
  }

  get isOn(): boolean {
    return this.#kill !== null;
  }

  /**
   * Stops every tenant, in force when this returns. The promise resolves once that is on the record of each, and rejects
   * with EVIDENCE_UNAVAILABLE where it is not: it is in force nonetheless. Throws SESSION_STATE where it is stopped.
   */
  kill(kill: Kill): Promise<void> {
    if (this.#kill !== null && !this.#isReleasing) throw conflict("killed", alreadyStopped);
    this.#kill = kill;
    this.#isReleasing = false;
    return this.#settled(this.#tenants(), (tenant) => this.#book.hold(tenant, kill));
  }

  /**
   * Lets every tenant act again, once that is on the record of each. Where it cannot be, this rejects with
   * EVIDENCE_UNAVAILABLE and all stay stopped. Rejects with SESSION_STATE as the release of anything else does.
   */
  async release(by: string, reason: string): Promise<void> {
    const kill = this.#kill;
    if (kill === null) throw conflict("active", notStopped);
    const tenants = this.#tenants().filter((tenant) => this.#book.has(tenant, wholeGateway));
    if (this.#isReleasing || tenants.some((tenant) => this.#book.isUnsettled(tenant, wholeGateway))) {
      throw conflict("killed", notRecordedYet);
    }
    this.#isReleasing = true;
    try {
      await this.#settled(tenants, (tenant) => this.#book.release(tenant, wholeGateway, by, reason));
    } catch (error) {
      if (this.#kill === kill) this.#resume();
      throw error;
    }
    // COMMIT POINT: it is released on every record. Whoever stopped it anew meanwhile has the last word.
    if (this.#kill !== kill) return;
    this.#kill = null;
    this.#isReleasing = false;
  }

  /** Puts what a former process left in force again. Of several, the first that is found tells who and why. */
  restore(kill: Kill): void {
    this.#kill ??= kill;
  }

  /** Puts a stop that is in force on the record of the tenants that do not have it: new ones, and half-released ones. */
  cover(): void {
    const kill = this.#kill;
    if (kill === null) return;
    for (const tenant of this.#tenants()) {
      if (!this.#book.has(tenant, wholeGateway)) this.#book.hold(tenant, kill).catch(() => undefined);
    }
  }

  #resume(): void {
    this.#isReleasing = false;
    this.cover();
  }

  /** Rejects where it fails for a tenant that is not refused by then, or where there is none. */
  async #settled(tenants: readonly string[], change: (tenant: string) => Promise<void>): Promise<void> {
    if (tenants.length === 0) throw new GatewayError("EVIDENCE_UNAVAILABLE", "no tenant has evidence to record it in");
    const settled = await Promise.allSettled(tenants.map(change));
    const able = new Set(this.#tenants());
    for (const [index, each] of settled.entries()) {
      if (each.status === "rejected" && able.has(tenants[index] ?? "")) throw each.reason;
    }
  }
}

const maxAtOnce = 1_000;
const durably: AbstractBatchOptions<string, string> & { readonly sync: true } = { sync: true };

/**
 * Moves the kills that a gateway wrote when nothing but sessions could be stopped, `<tenant>/kill/<session>`, to where
 * kills of sessions lie now. Durable when it resolves; who is stopped half way goes on at the next start.
 */
export async function moveFormerKills(store: SessionStore, tenant: string): Promise<void> {
  const prefix = killPrefix(tenant);
  // Every session's id begins so, and no scope does.
  const former = { gte: `${prefix}session-`, lt: `${prefix}session.` };
  for (;;) {
    const entries = await store.iterator({ ...former, limit: maxAtOnce }).all();
    if (entries.length === 0) return;
    const operations = entries.flatMap(([key, value]): BatchOperation[] => {
      const subject = decodeURIComponent(key.slice(prefix.length));
      return [
        { type: "put", key: killKey(tenant, { scope: "session", subject }), value },
        { type: "del", key },
      ];
    });
    await store.batch(operations, durably);
  }
}
