import { type Capability, capabilities } from "../kernel/capability.ts";
import type { TicketStanding } from "../kernel/capability-ticket.ts";
import { compileGlob } from "../kernel/glob.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";

/** Names, or globs of names, and what is done by them. */
export interface TicketScope {
  readonly tools: readonly string[];
  readonly targets: readonly string[];
  readonly capabilities: readonly Capability[];
}

/** What a ticket says: the payload of its token. */
export interface TicketClaims extends TicketScope {
  /** `tkt_` and 32 hex digits. */
  readonly jti: string;
  /** The principal who may use it. */
  readonly sub: string;
  readonly tenant: string;
  readonly max_uses: number;
  /** 128 random bits, base64url: who knows everything else of a ticket cannot guess its token. */
  readonly nonce: string;
  /** Seconds since 1970: when it was issued, and from when on it permits nothing. */
  readonly iat: number;
  readonly exp: number;
}

export const scopeBounds = { items: 16, characters: 128 } as const;
export const mostUses = 1_000;
export const ticketId: RegExp = /^tkt_[0-9a-f]{32}$/;

const nonceShape = /^[A-Za-z0-9_-]{22}$/;
const principalShape = /^principal-v1-[0-9a-f]{64}$/;

/** How each claim looks. A token has all of them, and no other. */
const shapes: Readonly<Record<keyof TicketClaims, (value: Json) => boolean>> = {
  jti: (value) => typeof value === "string" && ticketId.test(value),
  sub: (value) => typeof value === "string" && principalShape.test(value),
  tenant: (value) => typeof value === "string" && value !== "",
  tools: isPatterns,
  targets: isPatterns,
  capabilities: (value) => isPatterns(value) && (value as readonly Json[]).every(isCapability),
  max_uses: (value) => isCount(value) && value >= 1 && value <= mostUses,
  nonce: (value) => typeof value === "string" && nonceShape.test(value),
  iat: isCount,
  exp: isCount,
};

/** The claims in a payload; undefined for anything else. */
export function readClaims(value: Json): TicketClaims | undefined {
  if (!isJsonObject(value) || Object.keys(value).length !== Object.keys(shapes).length) return undefined;
  for (const [name, fits] of Object.entries(shapes)) {
    if (!Object.hasOwn(value, name) || !fits(value[name] as Json)) return undefined;
  }
  return value as unknown as TicketClaims;
}

/** What the claims alone say to a principal at a time (milliseconds since 1970). */
export function standingOfClaims({ sub, iat, exp }: TicketClaims, principal: string, now: number): TicketStanding {
  if (sub !== principal) return "other_principal";
  if (now < iat * 1_000) return "not_yet";
  return now >= exp * 1_000 ? "expired" : "valid";
}

/** Whether the ticket is for such an action. */
export function covers(scope: TicketScope, action: { tool: string; target: string; capability: Capability }): boolean {
  return (
    scope.capabilities.includes(action.capability) &&
    scope.tools.some((pattern) => compileGlob(pattern).test(action.tool)) &&
    scope.targets.some((pattern) => compileGlob(pattern).test(action.target))
  );
}

/** Whether a value is a list of patterns of the size that a ticket may hold. */
export function isPatterns(value: Json): boolean {
  return Array.isArray(value) && value.length >= 1 && value.length <= scopeBounds.items && value.every(isPattern);
}

export function isCapability(value: Json): boolean {
  return capabilities.some((known) => known === value);
}

function isPattern(value: Json): boolean {
  return typeof value === "string" && value !== "" && value.length <= scopeBounds.characters && value.isWellFormed();
}

function isCount(value: Json): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
