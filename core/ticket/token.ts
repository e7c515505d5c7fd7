import { canonicalJson } from "../kernel/canonical-json.ts";
import { type CompactJws, decodeBase64url, encodeBase64url, splitJws } from "../kernel/compact-jws.ts";
import { GatewayError } from "../kernel/error.ts";
import type { Json } from "../kernel/json.ts";
import type { SigningKey, VerifyingKey } from "../kernel/signing-key.ts";
import { parseStrictJson } from "../kernel/strict-json.ts";
import { readClaims, type TicketClaims } from "./claims.ts";

/** Characters. What is longer is no token. */
export const longestToken = 8_192;

const bounds = { depth: 2, nodes: 128, stringLength: 1_024, reader: "exact" } as const;

/** Stands in for what is no token, so that looking at one takes the same steps. */
const noToken: CompactJws = { header: "", payload: "", signed: ".", signature: Buffer.alloc(64) };

/**
 * The protected header of every token that a key signs, byte for byte. A reader compares it and takes nothing from it:
 * what a token says of its algorithm chooses nothing.
 */
export function headerOf(keyId: string): string {
  return encodeBase64url(`{"alg":"EdDSA","typ":"gateway-ticket+jwt","kid":"${keyId}"}`);
}

/** The token of a ticket: JWS compact (RFC 7515), EdDSA over Ed25519 (RFC 8037). Throws INVALID_PARAMS for one too long. */
export function writeToken(claims: TicketClaims, key: SigningKey): string {
  const signed = `${headerOf(key.id)}.${encodeBase64url(canonicalJson(claims as unknown as Json))}`;
  const token = `${signed}.${key.sign(signed).toString("base64url")}`;
  if (token.length <= longestToken) return token;
  throw new GatewayError("INVALID_PARAMS", `expected a ticket of at most ${longestToken} characters, got more`);
}

/** Whose key a header names; undefined for a header that no key of this gateway has. */
export type FindKey<Owner> = (header: string) => { readonly key: VerifyingKey; readonly owner: Owner } | undefined;

/**
 * The claims of a token and the owner of the key that signed it; undefined for a forged one. Every token costs one
 * verification: how long this takes tells nothing of which part was wrong. `decoy` verifies where no key fits.
 */
export function readToken<Owner>(
  token: string,
  find: FindKey<Owner>,
  decoy: VerifyingKey,
): { readonly claims: TicketClaims; readonly owner: Owner } | undefined {
  const { header, payload, signed, signature } = splitJws(token, longestToken) ?? noToken;
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
