import { canonicalJson, sha256Hex } from "./canonical-json.ts";
import type { Role } from "./role.ts";

/** The caller that attempts an action: a stable identifier derived from tenant and key, without the raw key. */
export interface Principal {
  readonly id: string;
  readonly tenant: string;
  readonly role: Role;
  /** The configured name of the key; safe to show. */
  readonly keyId: string;
}

/** The key id of callers without a key, where the configuration admits them. No configured key may have it. */
export const anonymousKeyId = "anonymous";

/** `principal-v1-<hex>` over the tenant and the key's `sha256:…` hash. Another key is another principal. */
export function principalId(tenant: string, keyHash: string): string {
  return `principal-v1-${sha256Hex(canonicalJson(["principal-v1", tenant, keyHash]))}`;
}

export type Transport = "http" | "sse";

/** The scope of a principal's actions: a labelled (or the default) HTTP session, or one live SSE connection. */
export interface SessionScope {
  readonly id: string;
  readonly transport: Transport;
  readonly label?: string;
}

/** The HTTP session of a principal for a label; no label is the principal's default session. */
export function httpSession(tenant: string, principal: string, label: string | undefined): SessionScope {
  const id = sessionId(tenant, principal, "http", label ?? null);
  return label === undefined ? { id, transport: "http" } : { id, transport: "http", label };
}

/** The scope of one live SSE connection. It shares nothing with other connections or with HTTP. */
export function sseSession(tenant: string, principal: string, connectionId: string): SessionScope {
  return { id: sessionId(tenant, principal, "sse", connectionId), transport: "sse" };
}

function sessionId(tenant: string, principal: string, transport: Transport, discriminator: string | null): string {
  return `session-v1-${sha256Hex(canonicalJson(["session-v1", tenant, principal, transport, discriminator]))}`;
}
