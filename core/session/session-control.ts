import type { Clock } from "../action/id.ts";
import type { Kill, KillTarget } from "../kill/kill.ts";
import { restoreKills, type SessionEvent } from "../kill/kill-restore.ts";
import type { SessionLog } from "../kill/kill-store.ts";
import { KillSwitch } from "../kill/kill-switch.ts";
import type { Store } from "../store/open.ts";
import { ReviewFlood, type RiskLimit } from "./risk-meter.ts";
import { SessionCache, type SessionCacheObserver } from "./session-cache.ts";
import { SessionDirectory } from "./session-directory.ts";
import { SessionSweep } from "./session-sweep.ts";
import { SessionWatch, type SessionWatchObserver } from "./session-watch.ts";
import { ValueWatch } from "./value-watch.ts";

/** The part of the ledger that sessions use. */
interface SessionLedger extends SessionLog {
  /** Returns the secret under which the values that sessions of a tenant came upon are digested. */
  valueKey(tenant: string): string;
  status(): readonly { readonly tenant: string; readonly state: "ready" | "failed" | "refused" }[];
  refuse(tenant: string, reason: string): void;
}

interface SessionControlOptions {
  readonly store: Store;
  readonly ledger: SessionLedger;
  readonly reviewFlood: { readonly reviews: number; readonly windowMs: number };
  readonly risk: RiskLimit;
  /** Sessions kept in memory. */
  readonly maxActive: number;
  /** A session that attempted nothing for so long is deleted. */
  readonly idleRetentionMs: number;
  /** True where the answers of any tool are untrusted. */
  readonly hasUntrusted: boolean;
  /** Returns whether the manifest of a task names a value. */
  readonly isExpected: (tenant: string, task: string, value: string) => boolean;
  readonly observer: SessionWatchObserver & SessionCacheObserver;
  readonly onSweepFailed: (cause: Error) => void;
  readonly clock: Clock;
  /** Monotonic, milliseconds. */
  readonly elapsedMs: () => number;
  /** Reads the session events of a tenant in the order of its chain. */
  readonly events: (store: Store, tenant: string, kind: "session") => AsyncIterable<SessionEvent>;
  /** Called in the turn of a kill, with the tenant it was ordered in. */
  readonly onKilled: (tenant: string, kill: Kill) => void;
  /** Called once a release is durable, with the tenant it was ordered in. */
  readonly onReleased: (tenant: string, target: KillTarget) => void;
}

export interface SessionControl {
  readonly killSwitch: KillSwitch;
  readonly sessionWatch: SessionWatch;
  readonly sessionDirectory: SessionDirectory;
  /** Not started yet. */
  readonly sessionSweep: SessionSweep;
}

/** Opens the session watch and the kill switch, with the kills of earlier processes in force. */
export async function openSessionControl(options: SessionControlOptions): Promise<SessionControl> {
  const {
    store,
    ledger,
    clock,
    events,
    onKilled,
    onReleased,
    elapsedMs,
    reviewFlood,
    risk,
    maxActive,
    idleRetentionMs,
    observer,
    onSweepFailed,
  } = options;
  const tenants = (): readonly string[] =>
    ledger.status().flatMap(({ tenant, state }) => (state === "refused" ? [] : [tenant]));
  const killSwitch = new KillSwitch({
    store,
    log: ledger,
    clock,
    tenants,
    onKilled,
    onReleased,
    onKill: (tenant, target) => sessionWatch.stop(tenant, target),
    onRelease: (tenant, target) => sessionWatch.release(tenant, target),
    findStop: (action) => sessionWatch.findStop(action),
  });
  const reviews = new ReviewFlood({ ...reviewFlood, killSwitch, elapsedMs });
  const cache = new SessionCache({ store, limit: risk, capacity: maxActive, observer });
  const groups = new SessionCache({ store, limit: risk, capacity: maxActive, observer: { watchedSessions: () => {} } });
  const isStopped = (tenant: string, session: string): boolean =>
    killSwitch.isKilled(tenant, { scope: "session", subject: session });
  const known = { store, cache, groups, clock, limit: risk, isStopped };
  const keyOf = (tenant: string): string => ledger.valueKey(tenant);
  const values = new ValueWatch({ isOn: options.hasUntrusted, keyOf, isExpected: options.isExpected });
  const sessionWatch = new SessionWatch({ ...known, log: ledger, killSwitch, reviews, values, observer });
  await restoreKills(killSwitch, {
    store,
    tenants: tenants(),
    events: (tenant) => events(store, tenant, "session"),
    refuse: (tenant, reason) => ledger.refuse(tenant, reason),
  });
  return {
    killSwitch,
    sessionWatch,
    sessionDirectory: new SessionDirectory(known),
    sessionSweep: new SessionSweep({ ...known, log: ledger, idleRetentionMs, tenants, onFailure: onSweepFailed }),
  };
}
