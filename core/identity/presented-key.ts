import { GatewayError } from "../kernel/error.ts";
import { singleHeader } from "./header.ts";

const longestKey = 512;
/** What a `Bearer` token can have in it (RFC 6750). */
const keyText = /^[A-Za-z0-9._~+/=-]+$/;

/**
 * The key a request presents in `X-API-Key` or `Authorization: Bearer`, or null where it presents none.
 * Throws DUPLICATE_HEADER and, for two different keys, INVALID_HEADER; KEY_UNKNOWN for what no key can look like.
 * A header that is there but unfit is never "no key": that would let it fall back to the anonymous caller.
 */
export function presentedKey(rawHeaders: readonly string[]): string | null {
  const authorization = singleHeader(rawHeaders, "authorization");
  const apiKey = singleHeader(rawHeaders, "x-api-key");
  const bearer = authorization === undefined ? undefined : checkKey(bearerToken(authorization));
  const direct = apiKey === undefined ? undefined : checkKey(apiKey);
  if (bearer !== undefined && direct !== undefined && bearer !== direct) {
    throw new GatewayError("INVALID_HEADER", "expected one key, got another in `authorization` than in `x-api-key`");
  }
  return bearer ?? direct ?? null;
}

function bearerToken(authorization: string): string {
  const space = authorization.indexOf(" ");
  if (authorization.slice(0, space).toLowerCase() !== "bearer") throw new GatewayError("KEY_UNKNOWN");
  return authorization.slice(space + 1);
}

function checkKey(text: string): string {
  if (text.length > longestKey || !keyText.test(text)) throw new GatewayError("KEY_UNKNOWN");
  return text;
}
