import { contentDigest } from "../kernel/digest.ts";
import type { Random } from "../kernel/port.ts";

/** A new key, and what the configuration stores in its place. */
export interface GeneratedKey {
  /** `agw_` and 43 base64url characters: 256 bits. */
  readonly key: string;
  /** `sha256:<64 hex>`. */
  readonly keyHash: string;
}

const keyBytes = 32;

/** Makes a key. The caller shows it once; it cannot be had from the hash. */
export function generateKey(random: Random): GeneratedKey {
  const bytes = random(keyBytes);
  if (bytes.length !== keyBytes) throw new TypeError(`generateKey: expected ${keyBytes} bytes, got ${bytes.length}`);
  const key = `agw_${Buffer.from(bytes).toString("base64url")}`;
  return { key, keyHash: contentDigest(key) };
}
