import { canonicalJson } from "../kernel/canonical-json.ts";
import { sha256Hex } from "../kernel/digest.ts";
import type { Json } from "../kernel/json.ts";

/**
 * A commitment to a private value: `sha256:<hex>` over the RFC 8785 bytes of `["commitment-v1", salt, value]`.
 * Who holds salt and value can prove what was committed to; who holds the digest alone cannot guess the value,
 * as long as the salt (16 random bytes, base64url) stays apart from the record.
 */
export function commit(value: Json, salt: string): string {
  return `sha256:${sha256Hex(canonicalJson(["commitment-v1", salt, value]))}`;
}
