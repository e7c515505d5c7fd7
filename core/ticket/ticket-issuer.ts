import type { Capability } from "../action/capability.ts";
import type { TicketObserver } from "../action/capability-ticket.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import type { Principal } from "../action/principal.ts";
import type { Store } from "../store/open.ts";
import { isPatterns, scopeBounds, type TicketClaims, type TicketScope, writeToken } from "./claims.ts";
import type { TicketKeys, TicketLog } from "./ticket-keys.ts";
import {
  type Revocation,
  readRevocation,
  readTicketEntry,
  revocationKey,
  type TicketEntry,
  type TicketStore,
  ticketIn,
  ticketKey,
  ticketRange,
} from "./ticket-store.ts";

export interface TicketRule extends TicketTimes {
  /** Unexpired tickets of one tenant. */
  readonly maxLive: number;
  readonly allowSelfIssue: boolean;
}

interface TicketIssuerOptions {
  readonly store: Store;
  readonly log: TicketLog;
  readonly keys: Pick<TicketKeys, "signer">;
  readonly tickets: TicketStore;
  readonly rule: TicketRule;
  readonly clock: Clock;
  readonly sweepClock: Clock;
  readonly random: Random;
  readonly newId: () => string;
  /** True where a configured key of the tenant has this principal. */
  readonly isPrincipal: (tenant: string, principal: string) => boolean;
  readonly onEvent: TicketObserver;
}

export interface IssuedTicket {
  /** Returned once and never stored. */
  readonly token: string;
  readonly ticket: TicketView;
}

interface TicketPage {
  readonly items: readonly TicketView[];
  /** The cursor of the next page; null after the last. */
  readonly next: string | null;
}

const nonceBytes = 16;
/** Time that an expired ticket is kept, because a use decided just before may still be in progress. */
const graceMs = 60_000;
const maxPerSweep = 100;

/** Issues, lists and revokes tickets. */
export class TicketIssuer {
  readonly #options: TicketIssuerOptions;
  /** The last issue of each tenant: one at a time, so that concurrent ones do not exceed the limit. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(options: TicketIssuerOptions) {
    this.#options = options;
  }

  get times(): TicketTimes {
    return this.#options.rule;
  }

  /**
   * Issues a ticket; on record and durable when this resolves. Rejects with NOT_FOUND for an unknown principal of the
   * tenant, TICKET_SELF_ISSUE for the issuer's own, TICKET_LIMIT where there are too many, and EVIDENCE_UNAVAILABLE where
   * it cannot be recorded.
   */
  issue(issuer: Principal, order: TicketOrder): Promise<IssuedTicket> {
    const { rule, isPrincipal } = this.#options;
    if (!isPrincipal(issuer.tenant, order.principal)) throw new GatewayError("NOT_FOUND", "no such principal");
    if (order.principal === issuer.id && !rule.allowSelfIssue) throw new GatewayError("TICKET_SELF_ISSUE");
    const before = this.#turns.get(issuer.tenant) ?? Promise.resolve();
    const turn = before.catch(() => undefined).then(() => this.#issue(issuer, order));
    this.#turns.set(issuer.tenant, turn);
    return turn;
  }

  /**
   * Revokes a ticket, in force at once; durable and on record when this resolves. Rejects with NOT_FOUND for an unknown
   * ticket, TICKET_STATE for a revoked one, and EVIDENCE_UNAVAILABLE where it cannot be recorded: it is in force
   * nonetheless until this process ends.
   */
  async revoke(tenant: string, id: string, by: string, reason: string): Promise<TicketView> {
    const { tickets, store, log, clock, onEvent } = this.#options;
    const entry = tickets.read(tenant, id);
    if (entry === undefined) throw new GatewayError("NOT_FOUND", "no such ticket");
    const key = revocationKey(tenant, id);
    if (store.getSync(key) !== undefined) throw new GatewayError("TICKET_STATE", "`revoked`: it is revoked already");
    tickets.revoke(tenant, id);
    const revocation = { by, reason, at: new Date(clock()).toISOString() };
    // The session is named where the ticket is bound to one, so that the bundle of the session contains the revocation.
    const bound = entry.session === null ? {} : { session: entry.session };
    const detail = { event: "revoked", ticket: id, by, reason, ...bound };
    await log.recordEvent(tenant, "ticket", detail, [{ type: "put", key, value: JSON.stringify(revocation) }]);
    onEvent("revoked", 1);
    return viewTicket(entry, revocation, clock());
  }

  /** Lists the tickets of a tenant after the id `after`, the oldest first; expired ones until they are swept. */
  async list(tenant: string, limit: number, after = ""): Promise<TicketPage> {
    const { store, tickets, clock } = this.#options;
    const keys = await store.keys({ ...ticketRange(tenant, after), limit: limit + 1 }).all();
    const items = keys.slice(0, limit).flatMap((key) => {
      const id = ticketIn(key);
      const entry = tickets.read(tenant, id);
      const revoked = store.getSync(revocationKey(tenant, id));
      return entry === undefined
        ? []
        : [viewTicket(entry, revoked === undefined ? null : readRevocation(revoked), clock())];
    });
    return { items, next: keys.length > limit ? ticketIn(keys[limit - 1] as string) : null };
  }

  /** Deletes up to 100 expired tickets and damaged entries of a tenant, on record. Returns whether there may be more. */
  async sweep(tenant: string): Promise<boolean> {
    const { store, log, tickets, sweepClock, onEvent } = this.#options;
    const expiredBefore = sweepClock() - graceMs;
    const gone: { readonly ticket: string; readonly uses: number | null }[] = [];
    for await (const [key, text] of store.iterator(ticketRange(tenant))) {
      const entry = readTicketEntry(text);
      if (entry === undefined || entry.claims.exp * 1_000 <= expiredBefore) {
        gone.push({ ticket: ticketIn(key), uses: entry?.uses ?? null });
      }
      if (gone.length === maxPerSweep) break;
    }
    if (gone.length === 0) return false;
    const operations = gone.flatMap(({ ticket }): BatchOperation[] => [
      { type: "del", key: ticketKey(tenant, ticket) },
      { type: "del", key: revocationKey(tenant, ticket) },
    ]);
    await log.recordEvent(tenant, "ticket", { event: "expired", tickets: gone }, operations);
    for (const { ticket } of gone) tickets.forget(tenant, ticket);
    onEvent("expired", gone.length);
    return gone.length === maxPerSweep;
  }

  async #issue(issuer: Principal, order: TicketOrder): Promise<IssuedTicket> {
    const { log, keys, rule, clock, onEvent } = this.#options;
    const { tenant } = issuer;
    await this.#makeRoom(tenant, rule.maxLive);
    const key = await keys.signer(tenant);
    const claims = this.#buildClaims(tenant, order);
    const token = writeToken(claims, key);
    const entry: TicketEntry = { claims, issued_by: issuer.id, uses: 0, session: null };
    const { jti, sub, max_uses, tools, targets, capabilities, exp } = claims;
    const detail = {
      event: "issued",
      ticket: jti,
      by: issuer.id,
      principal: sub,
      tools,
      targets,
      capabilities,
      max_uses,
      expires_at: new Date(exp * 1_000).toISOString(),
      key_id: key.id,
    };
    const put: BatchOperation = { type: "put", key: ticketKey(tenant, jti), value: JSON.stringify(entry) };
    await log.recordEvent(tenant, "ticket", detail, [put]);
    onEvent("issued", 1);
    return { token, ticket: viewTicket(entry, null, clock()) };
  }

  #buildClaims(
    tenant: string,
    { principal, tools, targets, capabilities, maxUses, ttlSeconds }: TicketOrder,
  ): TicketClaims {
    const { clock, random, newId } = this.#options;
    const iat = Math.floor(clock() / 1_000);
    return {
      jti: `tkt_${newId().replaceAll("-", "")}`,
      sub: principal,
      tenant,
      tools,
      targets,
      capabilities,
      max_uses: maxUses,
      nonce: Buffer.from(random(nonceBytes)).toString("base64url"),
      iat,
      exp: iat + ttlSeconds,
    };
  }

  async #makeRoom(tenant: string, maxLive: number): Promise<void> {
    while ((await this.#count(tenant, maxLive)) >= maxLive) {
      const more = await this.sweep(tenant);
      if (more || (await this.#count(tenant, maxLive)) < maxLive) continue;
      throw new GatewayError("TICKET_LIMIT", `expected at most ${maxLive} tickets in a tenant, got one more`);
    }
  }

  async #count(tenant: string, limit: number): Promise<number> {
    return (await this.#options.store.keys({ ...ticketRange(tenant), limit }).all()).length;
  }
}

/** A validated request for a ticket. */
interface TicketOrder extends TicketScope {
  readonly principal: string;
  readonly maxUses: number;
  readonly ttlSeconds: number;
}

/** Default and maximum lifetimes. */
interface TicketTimes {
  readonly defaultTtlSeconds: number;
  readonly maxTtlSeconds: number;
}

/** The body of a request for a ticket, validated by the admin port. */
export interface TicketRequest {
  readonly principal: string;
  readonly tools: readonly string[];
  readonly targets: readonly string[];
  readonly capabilities: readonly Capability[];
  readonly max_uses: number;
  readonly ttl_seconds?: number;
}

/** Completes a request. Throws INVALID_PARAMS for a lifetime beyond `times`, and for globs that a token cannot carry. */
export function orderOf(request: TicketRequest, times: TicketTimes): TicketOrder {
  const {
    principal,
    tools,
    targets,
    capabilities,
    max_uses: maxUses,
    ttl_seconds: ttl = times.defaultTtlSeconds,
  } = request;
  if (ttl > times.maxTtlSeconds) {
    throw new GatewayError(
      "INVALID_PARAMS",
      `expected \`ttl_seconds\` to be a whole number from 1 to ${times.maxTtlSeconds}, got \`${ttl}\``,
    );
  }
  for (const [name, list] of Object.entries({ tools, targets })) checkPatterns(name, list);
  return { principal, tools, targets, capabilities, maxUses, ttlSeconds: ttl };
}

/** Needed beside the schema, which counts characters: a token counts UTF-16 code units. */
function checkPatterns(name: string, list: readonly string[]): void {
  if (isPatterns(list)) return;
  const { items, characters } = scopeBounds;
  const expected = `a list of 1 to ${items} names or globs of at most ${characters} UTF-16 code units`;
  throw new GatewayError("INVALID_PARAMS", `expected \`${name}\` to be ${expected}`);
}

type TicketState = "live" | "used_up" | "expired" | "revoked";

/** A ticket as operators see it, without its token and nonce. */
export interface TicketView {
  readonly id: string;
  readonly state: TicketState;
  readonly principal: string;
  readonly tools: readonly string[];
  readonly targets: readonly string[];
  readonly capabilities: readonly string[];
  readonly uses: number;
  readonly max_uses: number;
  /** The session that used it first, the only one that may use it; null before the first use. */
  readonly session: string | null;
  /** The principal who issued it. */
  readonly issued_by: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly issued_at: string;
  readonly expires_at: string;
  readonly revoked: Revocation | null;
}

/** `now`: milliseconds since 1970. */
function viewTicket(entry: TicketEntry, revoked: Revocation | null, now: number): TicketView {
  const { claims, uses, session, issued_by } = entry;
  const { jti, sub, tools, targets, capabilities, max_uses, iat, exp } = claims;
  return {
    id: jti,
    state: stateOf(entry, revoked, now),
    principal: sub,
    tools,
    targets,
    capabilities,
    uses,
    max_uses,
    session,
    issued_by,
    issued_at: new Date(iat * 1_000).toISOString(),
    expires_at: new Date(exp * 1_000).toISOString(),
    revoked,
  };
}

function stateOf({ claims, uses }: TicketEntry, revoked: Revocation | null, now: number): TicketState {
  if (revoked !== null) return "revoked";
  if (now >= claims.exp * 1_000) return "expired";
  return uses >= claims.max_uses ? "used_up" : "live";
}
