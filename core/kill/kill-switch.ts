import { contentDigest } from "../action/canonical-json.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import type { Participant } from "../action/participant.ts";
import type { Mode, Policy, PolicyRef, Verdict } from "../action/policy.ts";
import { type Kill, type KillOrder, type KillTarget, wholeGateway } from "./kill.ts";
import {
  alreadyStopped,
  type KillPage,
  type KillPageRequest,
  KillStore,
  type KillStoreOptions,
  notRecordedYet,
  notStopped,
  stateConflict,
} from "./kill-store.ts";

interface KillSwitchOptions extends KillStoreOptions {
  readonly clock: Clock;
  /** The tenants whose evidence is not refused. */
  readonly tenants: () => readonly string[];
  /** Called in the turn of a kill, with the tenant it was ordered in, to cancel the requests in flight that it covers. */
  readonly onKilled: (tenant: string, kill: Kill) => void;
  /** Called once a release is durable, with the tenant it was ordered in. */
  readonly onReleased: (tenant: string, target: KillTarget) => void;
  /**
   * Returns the stopped session of the same principal that stops an action's session too; undefined for none. Throws where
   * that is unknown.
   */
  readonly findStop: (action: ActionEnvelope) => string | undefined;
}

const wholeTenant = { scope: "tenant", subject: null } as const;
const abstention: Verdict = Object.freeze({ decision: "abstain", findings: Object.freeze([]), risk: 0 });

/**
 * Stops sessions, principals, tenants, or the whole gateway. No action that a kill covers is dispatched until somebody
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
  readonly #kills: KillStore;
  readonly #gateway: GatewayStop;

  constructor(options: KillSwitchOptions) {
    this.#options = options;
    this.#kills = new KillStore(options);
    this.#gateway = new GatewayStop(this.#kills, options.tenants);
  }

  /** Outputs are not read: a kill cancels the requests in flight. */
  readsOutput(): boolean {
    return false;
  }

  /** Blocks every action that a kill covers, in every phase; abstains for others. */
  evaluate(action: ActionEnvelope): Verdict {
    const target = this.#findKill(action);
    return target === null ? abstention : block(action, target);
  }

  /** Throws SESSION_KILLED for an action that a kill covers. */
  check(action: ActionEnvelope): undefined {
    const target = this.#findKill(action);
    if (target !== null) throw new GatewayError("SESSION_KILLED", describeStop(action, target));
  }

  /** Returns whether this very target is stopped; a wider one may be. Throws where the store cannot be read. */
  isKilled(tenant: string, target: KillTarget): boolean {
    return target.scope === "gateway" ? this.#gateway.inForce !== null : this.#kills.has(tenant, target);
  }

  /**
   * Stops a target in a tenant, or everything; in force when this returns. The promise resolves once that is durable. It
   * rejects with EVIDENCE_UNAVAILABLE where the kill could not be recorded: it is in force nonetheless, and is recorded
   * when that is possible again. Throws SESSION_STATE for a target that is stopped already.
   */
  kill(tenant: string, order: KillOrder): Promise<void> {
    const kill: Kill = { ...order, killed_at: new Date(this.#options.clock()).toISOString() };
    const recorded = kill.scope === "gateway" ? this.#gateway.kill(kill) : this.#kills.kill(tenant, kill);
    this.#options.onKilled(tenant, kill);
    return recorded;
  }

  /**
   * Releases a target once that is durable. Rejects with EVIDENCE_UNAVAILABLE where it cannot be recorded; the target stays
   * stopped then. Rejects with SESSION_STATE for a target that is not stopped, or whose last change is not durable yet.
   */
  async release(tenant: string, target: KillTarget, by: string, reason: string): Promise<void> {
    if (target.scope === "gateway") await this.#gateway.release(by, reason);
    else await this.#kills.release(tenant, target, by, reason);
    this.#options.onReleased(tenant, target);
  }

  /** Lists the kills of a tenant in a stable order. */
  list(tenant: string, page: KillPageRequest): Promise<KillPage> {
    return this.#kills.list(tenant, page);
  }

  /** Restores the kills of a tenant from the store, and those that its chain records beside them. */
  async restore(tenant: string, recorded: Iterable<Kill>): Promise<void> {
    for (const kill of recorded) {
      if (!this.#kills.has(tenant, kill)) this.#kills.enforce(tenant, kill).catch(() => undefined);
    }
    await this.#kills.survey(tenant);
    const all = await this.#kills.find(tenant, wholeGateway);
    if (all !== undefined) this.#gateway.restore(all);
  }

  /** Surveys the tenants that were added since, and records a stop of the whole gateway for them too. */
  async includeNewTenants(): Promise<void> {
    this.#gateway.cover();
    await Promise.all(this.#options.tenants().map((tenant) => this.#kills.survey(tenant)));
  }

  /** Stops recording. Kills in force stay in force. */
  close(): void {
    this.#kills.close();
  }

  /** Finds the widest kill that covers an action. Runs for every action. */
  #findKill(action: ActionEnvelope): KillTarget | null {
    const { tenant, principal, session } = action;
    if (this.#gateway.inForce !== null) return wholeGateway;
    if (this.#kills.everKilled.get(tenant) === false) return null;
    if (this.#kills.has(tenant, wholeTenant)) return wholeTenant;
    const byPrincipal = { scope: "principal", subject: principal.id } as const;
    if (this.#kills.has(tenant, byPrincipal)) return byPrincipal;
    const bySession = { scope: "session", subject: session.id } as const;
    if (this.#kills.has(tenant, bySession)) return bySession;
    const other = this.#options.findStop(action);
    return other === undefined ? null : { scope: "session", subject: other };
  }
}

/** The error for requests that a kill cancels in flight. */
export function killedError(tenant: string, target: KillTarget): GatewayError {
  return new GatewayError("SESSION_KILLED", describeRelease(tenant, target));
}

function block(action: ActionEnvelope, target: KillTarget): Verdict {
  const finding = {
    rule: `${target.scope}.killed`,
    decision: "block",
    message: describeStop(action, target),
    severity: "critical",
    risk: 100,
    mode: "enforce",
  } as const;
  return { decision: "block", findings: [finding], risk: 100 };
}

/** Names another session of the principal as such, and the way out that is no new label. */
function describeStop({ tenant, session }: ActionEnvelope, target: KillTarget): string {
  const text = describeRelease(tenant, target);
  if (target.scope !== "session" || target.subject === session.id) return text;
  return `${text}, and with it every other session of this principal that has no task manifest of its own`;
}

function describeRelease(tenant: string, { scope, subject }: KillTarget): string {
  if (scope === "gateway") return "the whole gateway is stopped until an admin of the tenant that runs it releases it";
  const named = `${scope} \`${subject ?? tenant}\``;
  return `${named} is stopped until an operator or admin of ${scope === "tenant" ? "it" : "its tenant"} releases it`;
}

/**
 * The stop of every tenant at once: one kill, on the record of each.
 *
 * INVARIANT: it is in force for all tenants, including those that never acted, until its release is durable for all.
 */
class GatewayStop {
  readonly #kills: KillStore;
  /** The tenants whose evidence can be written: others cannot act anyway. */
  readonly #tenants: () => readonly string[];
  /** The kill in force; null while the gateway is not stopped. */
  inForce: Kill | null = null;
  #isReleasing = false;

  constructor(kills: KillStore, tenants: () => readonly string[]) {
    this.#kills = kills;
    this.#tenants = tenants;
  }

  /**
   * Stops every tenant; in force when this returns. The promise resolves once that is on the record of each, and rejects
   * with EVIDENCE_UNAVAILABLE where it is not: it is in force nonetheless. Throws SESSION_STATE where it is in force.
   */
  kill(kill: Kill): Promise<void> {
    if (this.inForce !== null && !this.#isReleasing) throw stateConflict("killed", alreadyStopped);
    this.inForce = kill;
    this.#isReleasing = false;
    return this.#changeAll(this.#tenants(), (tenant) => this.#kills.enforce(tenant, kill));
  }

  /**
   * Releases every tenant once that is on the record of each. Rejects with EVIDENCE_UNAVAILABLE where it cannot be
   * recorded; all stay stopped then. Rejects with SESSION_STATE as the release of any other target does.
   */
  async release(by: string, reason: string): Promise<void> {
    const kill = this.inForce;
    if (kill === null) throw stateConflict("active", notStopped);
    const tenants = this.#tenants().filter((tenant) => this.#kills.has(tenant, wholeGateway));
    if (this.#isReleasing || tenants.some((tenant) => this.#kills.isPending(tenant, wholeGateway))) {
      throw stateConflict("killed", notRecordedYet);
    }
    this.#isReleasing = true;
    try {
      await this.#changeAll(tenants, (tenant) => this.#kills.release(tenant, wholeGateway, by, reason));
    } catch (error) {
      if (this.inForce === kill) this.#resume();
      throw error;
    }
    // COMMIT POINT: it is released on every record. A newer kill stays in force.
    if (this.inForce !== kill) return;
    this.inForce = null;
    this.#isReleasing = false;
  }

  /** Restores the stop of an earlier process. Of several, the first names who ordered it and why. */
  restore(kill: Kill): void {
    this.inForce ??= kill;
  }

  /** Records a stop in force for the tenants that do not have it: new ones, and those released by half. */
  cover(): void {
    const kill = this.inForce;
    if (kill === null) return;
    for (const tenant of this.#tenants()) {
      if (!this.#kills.has(tenant, wholeGateway)) this.#kills.enforce(tenant, kill).catch(() => undefined);
    }
  }

  #resume(): void {
    this.#isReleasing = false;
    this.cover();
  }

  /** Changes all tenants. Rejects where that fails for one that is not refused by then, or where there is none. */
  async #changeAll(tenants: readonly string[], change: (tenant: string) => Promise<void>): Promise<void> {
    if (tenants.length === 0) throw new GatewayError("EVIDENCE_UNAVAILABLE", "no tenant has evidence to record it in");
    const settled = await Promise.allSettled(tenants.map(change));
    const able = new Set(this.#tenants());
    for (const [index, each] of settled.entries()) {
      if (each.status === "rejected" && able.has(tenants[index] ?? "")) throw each.reason;
    }
  }
}

/**
 * Blocks whatever is stopped, twice: as a policy, so that the record shows why, and in the turn of the commit, for a kill
 * that came while the action was judged.
 */
export function killParticipant(killSwitch: KillSwitch): Participant {
  return {
    name: "kill",
    policy: killSwitch,
    participation: killSwitch,
  };
}
