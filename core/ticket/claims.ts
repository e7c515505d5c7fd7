import { canonicalJson } from "../action/canonical-json.ts";
import { type Capability, capabilities } from "../action/capability.ts";
import type { TicketStanding } from "../action/capability-ticket.ts";
import { GatewayError } from "../action/error.ts";
import { compileGlob } from "../action/glob.ts";
import { isJsonObject, type Json } from "../action/json.ts";
import {
  type CompactJws,
  decodeBase64url,
  encodeBase64url,
  type SigningKey,
  splitJws,
  type VerifyingKey,
} from "../action/signing-key.ts";
import { parseStrictJson } from "../action/strict-json.ts";

/** The actions that a ticket permits; tools and targets are names or globs. */
export interface TicketScope {
  readonly tools: readonly string[];
  readonly targets: readonly string[];
  readonly capabilities: readonly Capability[];
}

/** The payload of a token. */
export interface TicketClaims extends TicketScope {
  /** `tkt_` and 32 hex digits. */
  readonly jti: string;
  /** The principal who may use it. */
  readonly sub: string;
  readonly tenant: string;
  readonly max_uses: number;
  /** 128 random bits, base64url, so that a token cannot be guessed from the other claims. */
  readonly nonce: string;
  /** Times of issue and expiry, seconds since 1970. */
  readonly iat: number;
  readonly exp: number;
}

export const scopeBounds = { items: 16, characters: 128 } as const;
export const maxUses = 1_000;
export const ticketId: RegExp = /^tkt_[0-9a-f]{32}$/;

const nonceShape = /^[A-Za-z0-9_-]{22}$/;
const principalShape = /^principal-v1-[0-9a-f]{64}$/;

/** The validator of each claim. A token has all of them, and no other. */
const validators: Readonly<Record<keyof TicketClaims, (value: Json) => boolean>> = {
  jti: (value) => typeof value === "string" && ticketId.test(value),
  sub: (value) => typeof value === "string" && principalShape.test(value),
  tenant: (value) => typeof value === "string" && value !== "",
  tools: isPatterns,
  targets: isPatterns,
  capabilities: (value) => isPatterns(value) && (value as readonly Json[]).every(isCapability),
  max_uses: (value) => isCount(value) && value >= 1 && value <= maxUses,
  nonce: (value) => typeof value === "string" && nonceShape.test(value),
  iat: isCount,
  exp: isCount,
};

/** Validates the claims of a payload; undefined for anything else. */
export function readClaims(value: Json): TicketClaims | undefined {
  if (!isJsonObject(value) || Object.keys(value).length !== Object.keys(validators).length) return undefined;
  for (const [name, isValid] of Object.entries(validators)) {
    if (!Object.hasOwn(value, name) || !isValid(value[name] as Json)) return undefined;
  }
  return value as unknown as TicketClaims;
}

/** Checks the claims alone for a principal at a time (milliseconds since 1970). */
export function standingOfClaims({ sub, iat, exp }: TicketClaims, principal: string, now: number): TicketStanding {
  if (sub !== principal) return "other_principal";
  if (now < iat * 1_000) return "not_yet";
  return now >= exp * 1_000 ? "expired" : "valid";
}

/** Returns whether a scope includes an action. */
export function covers(scope: TicketScope, action: { tool: string; target: string; capability: Capability }): boolean {
  return (
    scope.capabilities.includes(action.capability) &&
    scope.tools.some((pattern) => compileGlob(pattern).test(action.tool)) &&
    scope.targets.some((pattern) => compileGlob(pattern).test(action.target))
  );
}

/** Returns whether a value is a list of patterns within the bounds of a ticket. */
export function isPatterns(value: Json): boolean {
  return Array.isArray(value) && value.length >= 1 && value.length <= scopeBounds.items && value.every(isPattern);
}

function isCapability(value: Json): boolean {
  return capabilities.some((known) => known === value);
}

function isPattern(value: Json): boolean {
  return typeof value === "string" && value !== "" && value.length <= scopeBounds.characters && value.isWellFormed();
}

function isCount(value: Json): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** In characters. */
export const maxToken = 8_192;

const bounds = { depth: 2, nodes: 128, stringLength: 1_024, reader: "exact" } as const;

/** Replaces a malformed token, so that its verification takes the same steps. */
const noToken: CompactJws = { header: "", payload: "", signed: ".", signature: Buffer.alloc(64) };

/**
 * Builds the protected header of every token that a key signs. A reader compares it byte for byte: a token never chooses
 * its algorithm.
 */
export function headerOf(keyId: string): string {
  return encodeBase64url(`{"alg":"EdDSA","typ":"gateway-ticket+jwt","kid":"${keyId}"}`);
}

/** Signs a token: compact JWS (RFC 7515), EdDSA over Ed25519 (RFC 8037). Throws INVALID_PARAMS where it is too long. */
export function writeToken(claims: TicketClaims, key: SigningKey): string {
  const signed = `${headerOf(key.id)}.${encodeBase64url(canonicalJson(claims as unknown as Json))}`;
  const token = `${signed}.${key.sign(signed).toString("base64url")}`;
  if (token.length <= maxToken) return token;
  throw new GatewayError("INVALID_PARAMS", `expected a ticket of at most ${maxToken} characters, got more`);
}

/** Finds the key of a header; undefined for a header of no key of this gateway. */
type FindKey<Owner> = (header: string) => { readonly key: VerifyingKey; readonly owner: Owner } | undefined;

/**
 * Verifies a token. Returns its claims and the owner of its key; undefined for a forged one. Every token costs one
 * signature verification, with `decoy` where no key matches, so that timing does not show which part was wrong.
 */
export function readToken<Owner>(
  token: string,
  find: FindKey<Owner>,
  decoy: VerifyingKey,
): { readonly claims: TicketClaims; readonly owner: Owner } | undefined {
  const { header, payload, signed, signature } = splitJws(token, maxToken) ?? noToken;
  const found = find(header);
  const isSigned = (found?.key ?? decoy).verify(signed, signature);
  if (found === undefined || !isSigned) return undefined;
  const claims = readPayload(payload);
  return claims === undefined ? undefined : { claims, owner: found.owner };
}

function readPayload(payload: string): TicketClaims | undefined {
  const bytes = decodeBase64url(payload);
  if (bytes === undefined) return undefined;
  try {
    return readClaims(parseStrictJson(bytes, bounds));
  } catch {
    return undefined;
  }
}
