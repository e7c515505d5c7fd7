import { GatewayError } from "../kernel/error.ts";

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
