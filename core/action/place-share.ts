import { GatewayError } from "./error.ts";

/** The parts of a bounded resource that one key and one tenant may hold. */
export interface SharePercents {
  readonly keySharePercent: number;
  readonly tenantSharePercent: number;
}

/** The key that holds a place, and its tenant. */
export interface PlaceHolder {
  readonly id: string;
  readonly tenant: string;
}

/** The holders that one limit counts together. */
export type ShareScope = "key" | "tenant" | "gateway";

/** The limit that leaves no further place, and the seconds after which to try again. */
export interface UsedUpShare {
  readonly scope: ShareScope;
  readonly limit: number;
  readonly retryS: number;
}

/** Returns a share of `places`, rounded down, and at least one. */
export function shareOf(places: number, percent: number): number {
  return Math.max(1, Math.floor((places * percent) / 100));
}

/** Returns whether the places of `other` count towards the limit that `holder` has in this scope. */
export function isInScope(scope: ShareScope, holder: PlaceHolder | null, other: PlaceHolder | null): boolean {
  if (scope === "gateway") return true;
  if (holder === null || other === null) return false;
  return scope === "key" ? holder.id === other.id : holder.tenant === other.tenant;
}

/** Counts the places of a bounded resource by key, by tenant and in all. A holder of null counts in all only. */
export class PlaceShare {
  readonly limits: Readonly<Record<ShareScope, number>>;
  readonly #byKey = new Map<string, number>();
  readonly #byTenant = new Map<string, number>();
  #total = 0;

  constructor(places: number, { keySharePercent, tenantSharePercent }: SharePercents) {
    const [key, tenant] = [shareOf(places, keySharePercent), shareOf(places, tenantSharePercent)];
    this.limits = { key, tenant, gateway: places };
  }

  /** Returns the narrowest scope whose limit leaves `holder` no further place; undefined where there is one. */
  usedUp(holder: PlaceHolder | null): ShareScope | undefined {
    const { key, tenant, gateway } = this.limits;
    // A share of everything is no limit of its own.
    if (holder !== null && key < gateway && (this.#byKey.get(holder.id) ?? 0) >= key) return "key";
    if (holder !== null && tenant < gateway && (this.#byTenant.get(holder.tenant) ?? 0) >= tenant) return "tenant";
    return this.#total >= gateway ? "gateway" : undefined;
  }

  /** Counts one more place, also beyond a limit. */
  take(holder: PlaceHolder | null): void {
    this.#count(holder, 1);
  }

  /** Counts one place less. */
  release(holder: PlaceHolder | null): void {
    this.#count(holder, -1);
  }

  #count(holder: PlaceHolder | null, by: 1 | -1): void {
    this.#total += by;
    if (holder === null) return;
    add(this.#byKey, holder.id, by);
    add(this.#byTenant, holder.tenant, by);
  }
}

function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}

const scopeText: Readonly<Record<ShareScope, string>> = { key: " with one key", tenant: " of one tenant", gateway: "" };

/**
 * Makes the error for a share that is used up: `expected at most 16 connections with one key; try again in 1 s`. `what`
 * names the places, `advice` comes before "try again".
 */
export function shareError(
  code: "SESSION_LIMIT" | "UPSTREAM_BUSY" | "GATEWAY_BUSY" | "RATE_LIMITED",
  what: string,
  used: UsedUpShare,
  advice: string = "",
): GatewayError {
  const { scope, limit, retryS } = used;
  const detail = `expected at most ${limit} ${what}${scopeText[scope]}; ${advice}try again in ${retryS} s`;
  return new GatewayError(code, detail, { data: { reason: scope, limit, retry_after_s: retryS } });
}
