import type { Capability } from "../kernel/capability.ts";
import { GatewayError } from "../kernel/error.ts";
import { isPatterns, scopeBounds, type TicketScope } from "./claims.ts";

/** What an operator asks for. */
export interface TicketOrder extends TicketScope {
  readonly principal: string;
  readonly maxUses: number;
  readonly ttlSeconds: number;
}

/** Seconds that a ticket lasts unless told, and at most. */
export interface TicketTimes {
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
