import { GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import { RecentMap } from "../action/recent-map.ts";
import { Allowance } from "../action/token-bucket.ts";
import { atTurnEnd, type LoopLoad, LoopTime } from "./loop-time.ts";

/** The limit that a refused request exceeded. */
export type ShareLimit = "key_calls" | "tenant_calls" | "key_cpu" | "tenant_cpu" | "key_bytes";

interface FairShareOptions {
  readonly keyCallsPerMinute: number;
  readonly tenantCallsPerMinute: number;
  /** Share of one core, in percent. 100: unlimited. */
  readonly keyCpuPercent: number;
  readonly tenantCpuPercent: number;
  /** Load, in percent, from which on the shares of processor time are enforced. */
  readonly busyPercent: number;
  /** The load now, in percent: that of the event loop, or of the threads of plugins where it is higher. */
  readonly loadPercent: () => number;
  readonly mainThread: Pick<LoopLoad, "measure">;
  /** Monotonic, in milliseconds and fractions of them. */
  readonly elapsedMs: () => number;
  readonly onRefused: (limit: ShareLimit) => void;
}

/** The allowances of one key or one tenant. */
interface Purse {
  readonly calls: Allowance;
  /** Milliseconds of the main thread and of the threads of plugins. */
  readonly cpu: Allowance;
  /** Bytes of large bodies that wait for their turn. */
  waitingBytes: number;
}

/** The part of its share that a request spends: a call and processor time, or processor time alone. */
export type Spending = "call" | "time";

/** The principal whose key and tenant pay. */
export type Payer = Pick<Principal, "id" | "tenant">;

/** One holder of a purse, as errors name it. */
type Owner = "key" | "tenant";

/** Time for which processor time is saved up, at most. */
const savedSeconds = 2;
/** Bytes of large bodies of one key that may wait for their turn. */
const maxWaitingBytes = 33_554_432;
const bytesAllowed = `${maxWaitingBytes} bytes of this key to wait for their turn`;
/**
 * Time of processors that it takes to seal and write a byte of an action: on the thread that encodes records, in the store,
 * and on the main thread in a commit, which is nobody's. Measured with 4 MB.
 */
const msPerStored = 5e-5;
/** The time after a small request or message for which the thread counts as wanted by others than large ones. */
const wantedMs = 250;
/** Bytes of a body from which on the record that holds it holds others up. */
const heldUpBytes = 262_144;
/** Keys and subjects of access tokens remembered at once, and as many tenants. Beyond, the tenant's allowance still holds. */
const maxPurses = 100_000;

/**
 * Limits what one key and one tenant may spend on the gateway port: calls a minute, and time of the main thread and of the
 * threads of plugins. The port of operators, `/health` and metrics are not counted here.
 *
 * Processor time is spent before it is known, so an allowance is overdrawn first, and refused until it is paid off. It is
 * refused only while the threads are busy, but for bodies from 256 KiB on: time that nobody else wants costs nobody anything.
 *
 * INVARIANT: a refusal is decided before the body is parsed, and takes nothing: who waits as long as it says is admitted.
 */
export class FairShare {
  /** Resumed for a principal once what its admitted request waited for has come. */
  readonly mainThread: LoopTime<Payer>;
  readonly #options: FairShareOptions;
  readonly #keys = new RecentMap<Purse>();
  readonly #tenants = new RecentMap<Purse>();
  readonly #turns: TurnQueue;
  #lastSmallMs = Number.NEGATIVE_INFINITY;

  constructor(options: FairShareOptions) {
    this.#options = options;
    const { elapsedMs } = options;
    this.mainThread = new LoopTime(this.spend.bind(this), elapsedMs, options.mainThread);
    this.#turns = new TurnQueue(elapsedMs, () => elapsedMs() - this.#lastSmallMs < wantedMs);
  }

  /**
   * Charges what follows to the principal of a request. Throws RATE_LIMITED, with the time to wait, where its key or tenant
   * has no processor time left, or no call where it spends one. Called when a request begins, and again once its body is
   * complete and before it is parsed: many may begin before the first of them is known to be costly. A large body is refused
   * whatever the load.
   */
  admit(principal: Principal, spends: Spending = "time", isLarge = false): void {
    const { keyCpuPercent, tenantCpuPercent, busyPercent, loadPercent, elapsedMs } = this.#options;
    const now = elapsedMs();
    const [key, tenant] = this.#pursesOf(principal, now);
    const calls = spends === "call" ? 1 : 0;
    if (key.calls.left(now) < calls) throw this.#callsRefusal("key", key.calls, now);
    if (tenant.calls.left(now) < calls) throw this.#callsRefusal("tenant", tenant.calls, now);
    const isKeyOverdrawn = keyCpuPercent < 100 && key.cpu.left(now) <= 0;
    const isTenantOverdrawn = tenantCpuPercent < 100 && tenant.cpu.left(now) <= 0;
    if ((isKeyOverdrawn || isTenantOverdrawn) && (isLarge || loadPercent() >= busyPercent)) {
      if (isKeyOverdrawn) throw this.#cpuRefusal("key", keyCpuPercent, key.cpu, now);
      throw this.#cpuRefusal("tenant", tenantCpuPercent, tenant.cpu, now);
    }
    key.calls.take(calls, now);
    tenant.calls.take(calls, now);
    this.mainThread.resume(principal);
  }

  /** Admits a small body or message that is complete, as `admit` does. Those who send large ones leave it time. */
  admitSmall(principal: Principal, spends: Spending = "time"): void {
    this.admit(principal, spends);
    this.#lastSmallMs = this.#options.elapsedMs();
  }

  /**
   * Admits a large body or message that is complete, once it is its turn. Rejects with RATE_LIMITED, as `admit` does, and
   * where too many bytes of the key wait already. From 256 KiB on it is refused whatever the load: everybody's records wait
   * for one that holds it.
   */
  async admitLarge(principal: Principal, bytes: number): Promise<void> {
    const [key] = this.#pursesOf(principal, this.#options.elapsedMs());
    if (key.waitingBytes + bytes > maxWaitingBytes)
      throw this.#refusal("key_bytes", bytesAllowed, maxWaitingBytes, 1_000);
    key.waitingBytes += bytes;
    await this.pause(principal, "new");
    key.waitingBytes -= bytes;
    this.admitBytes(principal, bytes);
  }

  /** Admits a body of so many bytes, as `admit` does; one from 256 KiB on whatever the load. */
  admitBytes(principal: Principal, bytes: number): void {
    this.admit(principal, "time", bytes >= heldUpBytes);
  }

  /**
   * Lets everybody else have the thread between two parts of heavy work, then charges what follows to the principal. `new`: whatever of
   * its tenant has begun goes first.
   */
  pause(principal: Payer, work: "new" | "begun" = "begun"): Promise<void> {
    return new Promise((resolve) => {
      this.#turns.enter(principal.tenant, work, () => {
        this.mainThread.resume(principal);
        resolve();
      });
    });
  }

  /** Charges processor time of another thread to the principal. */
  spend(principal: Payer, ms: number): void {
    const now = this.#options.elapsedMs();
    for (const { cpu } of this.#pursesOf(principal, now)) cpu.take(ms, now);
  }

  /** Charges what it takes to seal and write so many bytes to the principal. */
  spendStored(principal: Payer, bytes: number): void {
    this.spend(principal, bytes * msPerStored);
  }

  #callsRefusal(owner: Owner, calls: Allowance, now: number): GatewayError {
    const allowed = `${calls.perMinute} calls a minute of this ${owner}`;
    return this.#refusal(`${owner}_calls`, allowed, calls.perMinute, calls.waitMs(1, now));
  }

  #cpuRefusal(owner: Owner, percent: number, cpu: Allowance, now: number): GatewayError {
    const allowed = `${percent} % of the gateway's processor time of this ${owner}`;
    return this.#refusal(`${owner}_cpu`, allowed, percent, cpu.waitMs(1, now));
  }

  #refusal(reason: ShareLimit, allowed: string, limit: number, waitMs: number): GatewayError {
    this.#options.onRefused(reason);
    const seconds = Math.ceil(waitMs / 1_000);
    const detail = `expected at most ${allowed}, got more; try again in ${seconds} s`;
    return new GatewayError("RATE_LIMITED", detail, { data: { reason, retry_after_s: seconds, limit } });
  }

  #pursesOf({ id, tenant }: Payer, now: number): readonly [key: Purse, tenant: Purse] {
    const { keyCallsPerMinute, tenantCallsPerMinute, keyCpuPercent, tenantCpuPercent } = this.#options;
    return [
      this.#keys.get(id) ?? addPurse(this.#keys, id, keyCallsPerMinute, keyCpuPercent, now),
      this.#tenants.get(tenant) ?? addPurse(this.#tenants, tenant, tenantCallsPerMinute, tenantCpuPercent, now),
    ];
  }
}

function addPurse(
  purses: RecentMap<Purse>,
  owner: string,
  callsPerMinute: number,
  cpuPercent: number,
  now: number,
): Purse {
  const msPerSecond = cpuPercent * 10;
  const purse: Purse = {
    calls: new Allowance(callsPerMinute, now),
    cpu: new Allowance(msPerSecond * 60, now, msPerSecond * savedSeconds),
    waitingBytes: 0,
  };
  purses.set(owner, purse);
  purses.forgetOldest(maxPurses);
  return purse;
}

/**
 * Gives turns of the event loop to heavy work: one in each, and tenant by tenant. What has come meanwhile is served between
 * them, however many wait. While others want the thread, a turn is followed by as much time without one as it took: a light
 * request, which takes several turns, then meets few of them. Work that has begun goes on before other work of its tenant
 * begins: little is under way at once.
 */
export class TurnQueue {
  readonly #elapsedMs: () => number;
  readonly #isWanted: () => boolean;
  /** The work that waits, by tenant; the tenant whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #isServing = false;
  #restsUntil = 0;

  /** `elapsedMs`: monotonic, with fractions of a millisecond. `isWanted`: whether others want the thread. */
  constructor(elapsedMs: () => number, isWanted: () => boolean) {
    this.#elapsedMs = elapsedMs;
    this.#isWanted = isWanted;
  }

  /** Calls `go` in a turn of its own, once it is the tenant's. */
  enter(tenant: string, work: "new" | "begun", go: () => void): void {
    const lane = this.#waiting.get(tenant);
    if (lane === undefined) this.#waiting.set(tenant, [go]);
    else if (work === "new") lane.push(go);
    else lane.unshift(go);
    if (!this.#isServing) this.#schedule();
  }

  #schedule(): void {
    this.#isServing = this.#waiting.size > 0;
    if (!this.#isServing) return;
    const restMs = this.#restsUntil - this.#elapsedMs();
    if (restMs < 1) setImmediate(this.#serve);
    else setTimeout(this.#serve, restMs);
  }

  readonly #serve = (): void => {
    const [next] = this.#waiting;
    if (next === undefined) throw new TypeError("TurnQueue: expected somebody to wait");
    const [tenant, lane] = next;
    const go = lane.shift();
    this.#waiting.delete(tenant);
    if (lane.length > 0) this.#waiting.set(tenant, lane);
    const start = this.#elapsedMs();
    atTurnEnd(() => this.#end(start));
    go?.();
  };

  #end(start: number): void {
    const now = this.#elapsedMs();
    this.#restsUntil = this.#isWanted() ? now + (now - start) : now;
    this.#schedule();
  }
}
