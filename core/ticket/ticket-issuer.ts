import type { Capability } from "../action/capability.ts";
import type { TicketObserver } from "../action/capability-ticket.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import type { Principal } from "../action/principal.ts";
import { isPatterns, scopeBounds, type TicketClaims, type TicketScope, writeToken } from "./claims.ts";
import type { TicketKeys, TicketLog } from "./ticket-keys.ts";
import {
  type Revocation,
  readEntry,
  readRevocation,
  revocationKey,
  type TicketBook,
  type TicketEntry,
  type TicketStore,
  ticketIn,
  ticketKey,
  ticketRange,
} from "./ticket-store.ts";

export interface TicketRule extends TicketTimes {
  /** Tickets of one tenant that have not expired. */
  readonly maxLive: number;
  readonly allowSelfIssue: boolean;
}

interface TicketOfficeParts {
  readonly store: TicketStore;
  readonly log: TicketLog;
  readonly keys: Pick<TicketKeys, "signer">;
  readonly book: TicketBook;
  readonly rule: TicketRule;
  /** Milliseconds since 1970; never goes back. */
  readonly clock: Clock;
  readonly random: Random;
  readonly newId: () => string;
  /** Whether some key makes its holder this principal of this tenant. */
  readonly knows: (tenant: string, principal: string) => boolean;
  readonly onEvent: TicketObserver;
}

export interface IssuedTicket {
  /** Told once: it is kept nowhere. */
  readonly token: string;
  readonly ticket: TicketView;
}

interface TicketPage {
  readonly items: readonly TicketView[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

const nonceBytes = 16;
/** An expired ticket is kept so long: a use that was decided just before may still be under way. */
const lingerMs = 60_000;
const sweptAtOnce = 100;

/** Where tickets are issued, looked at and revoked. */
export class TicketOffice {
  readonly #parts: TicketOfficeParts;
  /** Per tenant, the issue that is under way: so that many at once do not pass the limit. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(parts: TicketOfficeParts) {
    this.#parts = parts;
  }

  get times(): TicketTimes {
    return this.#parts.rule;
  }

  /**
   * A ticket, on record and durable when this resolves. Rejects with NOT_FOUND for a principal that the issuer's tenant
   * does not have, TICKET_SELF_ISSUE for the issuer's own, TICKET_LIMIT where there are too many, EVIDENCE_UNAVAILABLE
   * where it cannot be recorded.
   */
  issue(issuer: Principal, order: TicketOrder): Promise<IssuedTicket> {
    const { rule, knows } = this.#parts;
    if (!knows(issuer.tenant, order.principal)) throw new GatewayError("NOT_FOUND", "no such principal");
    if (order.principal === issuer.id && !rule.allowSelfIssue) throw new GatewayError("TICKET_SELF_ISSUE");
    const before = this.#turns.get(issuer.tenant) ?? Promise.resolve();
    const turn = before.catch(() => undefined).then(() => this.#issue(issuer, order));
    this.#turns.set(issuer.tenant, turn);
    return turn;
  }

  /**
   * In force when this is called; durable and on record when it resolves. Rejects with NOT_FOUND for a ticket that the
   * tenant does not have, or not any more, TICKET_STATE for one that is revoked, and EVIDENCE_UNAVAILABLE where it
   * cannot be recorded: until this process ends it is in force nonetheless.
   */
  async revoke(tenant: string, id: string, by: string, reason: string): Promise<TicketView> {
    const { book, store, log, clock, onEvent } = this.#parts;
    const entry = book.read(tenant, id);
    if (entry === undefined) throw new GatewayError("NOT_FOUND", "no such ticket");
    const key = revocationKey(tenant, id);
    if (store.getSync(key) !== undefined) throw new GatewayError("TICKET_STATE", "`revoked`: it is revoked already");
    book.revoke(tenant, id);
    const revocation = { by, reason, at: new Date(clock()).toISOString() };
    // Named with the session that it is bound to, as far as that is known: a verifier of the session is to hear of it.
    const bound = entry.session === null ? {} : { session: entry.session };
    const detail = { event: "revoked", ticket: id, by, reason, ...bound };
    await log.recordEvent(tenant, "ticket", detail, [{ type: "put", key, value: JSON.stringify(revocation) }]);
    onEvent("revoked", 1);
    return showTicket(entry, revocation, clock());
  }

  /** A tenant's tickets behind that of the id `after`, the oldest first; expired ones as long as they are kept. */
  async list(tenant: string, limit: number, after = ""): Promise<TicketPage> {
    const { store, book, clock } = this.#parts;
    const keys = await store.keys({ ...ticketRange(tenant, after), limit: limit + 1 }).all();
    const items = keys.slice(0, limit).flatMap((key) => {
      const id = ticketIn(key);
      const entry = book.read(tenant, id);
      const revoked = store.getSync(revocationKey(tenant, id));
      return entry === undefined
        ? []
        : [showTicket(entry, revoked === undefined ? null : readRevocation(revoked), clock())];
    });
    return { items, next: keys.length > limit ? ticketIn(keys[limit - 1] as string) : null };
  }

  /** Takes expired tickets of a tenant, and entries that no gateway wrote, out of the store, on record. At most 100: says whether there may be more. */
  async sweep(tenant: string): Promise<boolean> {
    const { store, log, book, clock, onEvent } = this.#parts;
    const over = clock() - lingerMs;
    const gone: { readonly ticket: string; readonly uses: number | null }[] = [];
    for await (const [key, text] of store.iterator(ticketRange(tenant))) {
      const entry = readEntry(text);
      if (entry === undefined || entry.claims.exp * 1_000 <= over) {
        gone.push({ ticket: ticketIn(key), uses: entry?.uses ?? null });
      }
      if (gone.length === sweptAtOnce) break;
    }
    if (gone.length === 0) return false;
    const operations = gone.flatMap(({ ticket }): BatchOperation[] => [
      { type: "del", key: ticketKey(tenant, ticket) },
      { type: "del", key: revocationKey(tenant, ticket) },
    ]);
    await log.recordEvent(tenant, "ticket", { event: "expired", tickets: gone }, operations);
    for (const { ticket } of gone) book.forget(tenant, ticket);
    onEvent("expired", gone.length);
    return gone.length === sweptAtOnce;
  }

  async #issue(issuer: Principal, order: TicketOrder): Promise<IssuedTicket> {
    const { log, keys, rule, clock, onEvent } = this.#parts;
    const { tenant } = issuer;
    await this.#makeRoom(tenant, rule.maxLive);
    const key = await keys.signer(tenant);
    const claims = this.#claim(tenant, order);
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
    return { token, ticket: showTicket(entry, null, clock()) };
  }

  #claim(tenant: string, { principal, tools, targets, capabilities, maxUses, ttlSeconds }: TicketOrder): TicketClaims {
    const { clock, random, newId } = this.#parts;
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

  async #makeRoom(tenant: string, most: number): Promise<void> {
    while ((await this.#count(tenant, most)) >= most) {
      const more = await this.sweep(tenant);
      if (more || (await this.#count(tenant, most)) < most) continue;
      throw new GatewayError("TICKET_LIMIT", `expected at most ${most} tickets in a tenant, got one more`);
    }
  }

  async #count(tenant: string, most: number): Promise<number> {
    return (await this.#parts.store.keys({ ...ticketRange(tenant), limit: most }).all()).length;
  }
}

/** What an operator asks for. */
interface TicketOrder extends TicketScope {
  readonly principal: string;
  readonly maxUses: number;
  readonly ttlSeconds: number;
}

/** Seconds that a ticket lasts unless told, and at most. */
interface TicketTimes {
  readonly defaultTtlSeconds: number;
  readonly maxTtlSeconds: number;
}

/** An order as it is asked for, with the shape that the admin port has checked. */
export interface AskedTicket {
  readonly principal: string;
  readonly tools: readonly string[];
  readonly targets: readonly string[];
  readonly capabilities: readonly Capability[];
  readonly max_uses: number;
  readonly ttl_seconds?: number;
}

/** Throws INVALID_PARAMS for one that would last longer than `times` has it, or whose globs a token cannot carry. */
export function orderOf(asked: AskedTicket, times: TicketTimes): TicketOrder {
  const {
    principal,
    tools,
    targets,
    capabilities,
    max_uses: maxUses,
    ttl_seconds: ttl = times.defaultTtlSeconds,
  } = asked;
  if (ttl > times.maxTtlSeconds) {
    throw new GatewayError(
      "INVALID_PARAMS",
      `expected \`ttl_seconds\` to be a whole number from 1 to ${times.maxTtlSeconds}, got \`${ttl}\``,
    );
  }
  for (const [name, list] of Object.entries({ tools, targets })) checkPatterns(name, list);
  return { principal, tools, targets, capabilities, maxUses, ttlSeconds: ttl };
}

/** A token counts UTF-16 code units; a schema counts characters. */
function checkPatterns(name: string, list: readonly string[]): void {
  if (isPatterns(list)) return;
  const { items, characters } = scopeBounds;
  const expected = `a list of 1 to ${items} names or globs of at most ${characters} UTF-16 code units`;
  throw new GatewayError("INVALID_PARAMS", `expected \`${name}\` to be ${expected}`);
}

type TicketState = "live" | "used_up" | "expired" | "revoked";

/** A ticket as operators see it: all but what would let somebody use it. */
export interface TicketView {
  readonly id: string;
  readonly state: TicketState;
  readonly principal: string;
  readonly tools: readonly string[];
  readonly targets: readonly string[];
  readonly capabilities: readonly string[];
  readonly uses: number;
  readonly max_uses: number;
  /** The session that used it first, and that alone may use it; null until then. */
  readonly session: string | null;
  /** The principal who issued it. */
  readonly issued_by: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly issued_at: string;
  readonly expires_at: string;
  readonly revoked: Revocation | null;
}

/** `now`: milliseconds since 1970. */
function showTicket(entry: TicketEntry, revoked: Revocation | null, now: number): TicketView {
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
