import { canonicalJson } from "./canonical-json.ts";
import { sha256Hex } from "./digest.ts";

export type Transport = "http" | "sse";

/** Where a principal acts: a labelled (or the default) HTTP session, or one live SSE connection. */
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

/** The scope of one live SSE connection. Nothing carries over to another one, nor to HTTP. */
export function sseSession(tenant: string, principal: string, connectionId: string): SessionScope {
  return { id: sessionId(tenant, principal, "sse", connectionId), transport: "sse" };
}

function sessionId(tenant: string, principal: string, transport: Transport, discriminator: string | null): string {
  return `session-v1-${sha256Hex(canonicalJson(["session-v1", tenant, principal, transport, discriminator]))}`;
}
