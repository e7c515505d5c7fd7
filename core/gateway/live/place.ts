import { isInScope, PlaceShare, type SharePercents, shareError } from "../../action/place-share.ts";
import type { Principal } from "../../action/principal.ts";
import { can } from "../../action/role.ts";
import { addressGroup } from "../../http/rate.ts";

/** A connection that may hold a place. */
interface PlacedConnection {
  /** `displaced`: an operator needs its place. `replaced`: newer connections of its address did not authenticate either. */
  close(why: "displaced" | "replaced"): void;
}

interface PlaceLimits extends SharePercents {
  readonly maxWebsockets: number;
  /** For each address. */
  readonly maxUnauthenticatedWebsockets: number;
}

/** Seconds until it is worth asking for a place again: watchers stay for a while. */
const retryS = 10;

/**
 * The places of connections to `/v1/ws`: in all, and for each key and tenant. Connections that have not authenticated hold no
 * place; their number is bounded for each address and in all, and a further one ends the oldest. An operator takes the place
 * of a viewer where there is no other.
 */
export class LivePlaces<Connection extends PlacedConnection> {
  readonly #limits: PlaceLimits;
  readonly #share: PlaceShare;
  /** In the order in which they came, like those without a key. */
  readonly #holders = new Map<Connection, Principal>();
  /** The address of each, as `addressGroup` names it. */
  readonly #unauthenticated = new Map<Connection, string>();

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
    this.#share = new PlaceShare(limits.maxWebsockets, limits);
  }

  /** Ends a viewer's connection where an operator would get no place otherwise. Throws RATE_LIMITED or GATEWAY_BUSY. */
  makeRoom(principal: Principal): void {
    for (;;) {
      const scope = this.#share.usedUp(principal);
      if (scope === undefined) return;
      const displaced = scope === "key" ? undefined : this.#findDisplaceable(scope, principal);
      if (displaced === undefined) {
        const used = { scope, limit: this.#share.limits[scope], retryS };
        throw shareError(scope === "gateway" ? "GATEWAY_BUSY" : "RATE_LIMITED", "connections to `/v1/ws`", used);
      }
      this.leave(displaced);
      displaced.close("displaced");
    }
  }

  /** Gives a place to a connection; `makeRoom` was called in this turn. */
  take(connection: Connection, principal: Principal): void {
    this.leave(connection);
    this.#holders.set(connection, principal);
    this.#share.take(principal);
  }

  /** Admits a connection that has yet to authenticate, and ends the oldest one of its address, or of all, beyond the limit. */
  admitUnauthenticated(connection: Connection, address: string): void {
    const { maxUnauthenticatedWebsockets: maxEach, maxWebsockets } = this.#limits;
    const group = addressGroup(address);
    this.#unauthenticated.set(connection, group);
    const own = [...this.#unauthenticated].filter(([, other]) => other === group);
    if (own.length > maxEach) this.#replace(own[0]?.[0]);
    if (this.#unauthenticated.size > maxWebsockets) this.#replace(this.#unauthenticated.keys().next().value);
  }

  /** Frees the place of a connection, if it has one. */
  leave(connection: Connection): void {
    this.#unauthenticated.delete(connection);
    const principal = this.#holders.get(connection);
    if (principal === undefined) return;
    this.#holders.delete(connection);
    this.#share.release(principal);
  }

  #replace(connection: Connection | undefined): void {
    if (connection === undefined) return;
    this.leave(connection);
    connection.close("replaced");
  }

  /** Finds the newest connection of a viewer in this scope; undefined where `principal` is a viewer too, or there is none. */
  #findDisplaceable(scope: "tenant" | "gateway", principal: Principal): Connection | undefined {
    if (isViewer(principal)) return undefined;
    let newest: Connection | undefined;
    for (const [connection, holder] of this.#holders) {
      if (isViewer(holder) && isInScope(scope, principal, holder)) newest = connection;
    }
    return newest;
  }
}

function isViewer({ role }: Principal): boolean {
  return !can(role, "approval.review");
}
