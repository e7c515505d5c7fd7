import { GatewayError } from "../action/error.ts";

/**
 * The one value of a header in Node's flat list of names and values; undefined where it is absent.
 * Throws DUPLICATE_HEADER. Node's own `headers` would keep the first or join them, and another hop the last.
 */
export function singleHeader(rawHeaders: readonly string[], name: string): string | undefined {
  let value: string | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() !== name) continue;
    if (value !== undefined) throw new GatewayError("DUPLICATE_HEADER", `expected \`${name}\` once, got it again`);
    value = rawHeaders[at + 1];
  }
  return value;
}

const label = /^[\x21-\x7e]{1,128}$/;

/**
 * The label of the session, from `X-Gateway-Session-ID`; undefined where the request has none.
 * Throws DUPLICATE_HEADER, and INVALID_HEADER unless it is 1 to 128 visible ASCII characters:
 * joined duplicates must not open a scope `a, b` that no client named.
 */
export function sessionLabel(rawHeaders: readonly string[]): string | undefined {
  const value = singleHeader(rawHeaders, "x-gateway-session-id");
  if (value === undefined || label.test(value)) return value;
  throw new GatewayError(
    "INVALID_HEADER",
    `expected 1 to 128 visible ASCII characters in \`x-gateway-session-id\`, got ${value.length} characters`,
  );
}
