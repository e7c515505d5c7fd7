import { GatewayError } from "../action/error.ts";
import { parsedUrl } from "../action/parsed-url.ts";

/** Returns the key from GATEWAY_API_KEY. Throws KEY_MISSING where there is none. */
export function requireKey(): string {
  const key = process.env.GATEWAY_API_KEY;
  if (key === undefined || key === "") throw new GatewayError("KEY_MISSING", "set GATEWAY_API_KEY to an API key");
  return key;
}

/**
 * Returns the URL of a port, which `option` gave, without a slash at its end. Throws INVALID_PARAMS for what is no plain URL: the
 * key is sent to it.
 */
export function plainUrl(url: string, option = "--url"): string {
  if (/^https?:\/\/[A-Za-z0-9_.:[\]-]+(?:\/[A-Za-z0-9._/-]*)?$/.test(url) && parsedUrl(url) !== undefined)
    return url.replace(/\/$/, "");
  throw new GatewayError(
    "INVALID_PARAMS",
    `expected \`${option}\` to be an http: or https: URL without credentials or query`,
  );
}

/** Throws BODY_TOO_LARGE for more than `maxBytes`. */
export async function readBounded(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
  what: string,
): Promise<Buffer<ArrayBuffer>> {
  const read: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) throw new GatewayError("BODY_TOO_LARGE", `expected ${what} to have at most ${maxBytes} bytes`);
    read.push(chunk);
  }
  return Buffer.concat(read);
}
