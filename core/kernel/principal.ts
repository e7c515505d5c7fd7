import { canonicalJson } from "./canonical-json.ts";
import { sha256Hex } from "./digest.ts";
import type { Role } from "./role.ts";

/** Who attempts an action: a stable identifier made from tenant and key. The raw key is not in it. */
export interface Principal {
  readonly id: string;
  readonly tenant: string;
  readonly role: Role;
  /** The configured name of the key; safe to show. */
  readonly keyId: string;
}

/** The key id of callers without a key, where configuration lets them in. No configured key may take it. */
export const anonymousKeyId = "anonymous";

/** `principal-v1-<hex>` over the tenant and the key's `sha256:…` hash. Another key is another principal. */
export function principalId(tenant: string, keyHash: string): string {
  return `principal-v1-${sha256Hex(canonicalJson(["principal-v1", tenant, keyHash]))}`;
}
