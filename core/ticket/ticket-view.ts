import type { Revocation, TicketEntry } from "./ticket-entry.ts";

export type TicketState = "live" | "used_up" | "expired" | "revoked";

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
export function showTicket(entry: TicketEntry, revoked: Revocation | null, now: number): TicketView {
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
