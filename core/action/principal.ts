import { canonicalJson, sha256Hex } from "./canonical-json.ts";
import type { Role } from "./role.ts";

/** The caller that attempts an action: a stable identifier derived from tenant and key, or from issuer and subject. */
export interface Principal {
  readonly id: string;
  readonly tenant: string;
  readonly role: Role;
  /** The configured name of the key, or `oauth:<subject>`; safe to show. */
  readonly keyId: string;
}

/** The key id of callers without a key, where the configuration admits them. No configured key may have it. */
export const anonymousKeyId = "anonymous";

/** `principal-v1-<hex>` over the tenant and the key's `sha256:…` hash. Another key is another principal. */
export function principalId(tenant: string, keyHash: string): string {
  return `principal-v1-${sha256Hex(canonicalJson(["principal-v1", tenant, keyHash]))}`;
}

/** `principal-v1-<hex>` of the subject of an issuer's access tokens, which stays when the token is renewed. */
export function tokenPrincipalId(tenant: string, issuer: string, subject: string): string {
  return `principal-v1-${sha256Hex(canonicalJson(["principal-v1", tenant, issuer, subject]))}`;
}

/** Begins the key id of each subject of access tokens. The id of a configured key contains no colon. */
const tokenKeyPrefix = "oauth:";

/** The name that stands for a key's, of the subject of access tokens. */
export function tokenKeyId(subject: string): string {
  return tokenKeyPrefix + subject;
}

/** Returns whether a key id is that of a subject of access tokens. */
export function isTokenKeyId(keyId: string): boolean {
  return keyId.startsWith(tokenKeyPrefix);
}

export type Transport = "http" | "sse";

/** The scope of a principal's actions: a labelled (or the default) HTTP session, or one live SSE connection. */
export interface SessionScope {
  readonly id: string;
  readonly transport: Transport;
  readonly label?: string;
}

/**
 * The scope of a principal's actions. `name`: the label of an HTTP session, undefined for the principal's default one; or
 * the id of a live SSE connection, which shares nothing with other connections or with HTTP.
 */
export function sessionScope(
  transport: Transport,
  tenant: string,
  principal: string,
  name: string | undefined,
): SessionScope {
  const hash = sha256Hex(canonicalJson(["session-v1", tenant, principal, transport, name ?? null]));
  const scope = { id: `session-v1-${hash}`, transport };
  return transport === "http" && name !== undefined ? { ...scope, label: name } : scope;
}
