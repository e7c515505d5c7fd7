import { GatewayError } from "../kernel/error.ts";
import { singleHeader } from "./header.ts";

const label = /^[\x21-\x7e]{1,128}$/;

/**
 * The label of the session, from `X-Gateway-Session-ID`; undefined where the request has none.
 * Throws DUPLICATE_HEADER, and INVALID_HEADER unless it is 1 to 128 visible ASCII characters:
 * joined duplicates must not open a scope `a, b` that nobody asked for.
 */
export function sessionLabel(rawHeaders: readonly string[]): string | undefined {
  const value = singleHeader(rawHeaders, "x-gateway-session-id");
  if (value === undefined || label.test(value)) return value;
  throw new GatewayError(
    "INVALID_HEADER",
    `expected 1 to 128 visible ASCII characters in \`x-gateway-session-id\`, got ${value.length} characters`,
  );
}
