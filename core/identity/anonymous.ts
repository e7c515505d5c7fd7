import { type Principal, principalId } from "../kernel/principal.ts";

/**
 * The caller without a key in `tenant`: one for all such callers, and the least of roles.
 * `anonymous` is no hash, so no key has the same identifier.
 */
export function anonymousPrincipal(tenant: string): Principal {
  return Object.freeze({ id: principalId(tenant, "anonymous"), tenant, role: "viewer", keyId: "anonymous" });
}
