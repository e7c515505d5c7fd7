import { canonicalJson } from "./canonical-json.ts";
import { sha256Hex } from "./digest.ts";
import type { ActionEnvelope } from "./envelope.ts";
import type { Json } from "./json.ts";

/**
 * What an approval is bound to: `sha256:<hex>` over the RFC 8785 bytes of
 * `["approval-fingerprint-v1", tenant, principal, session, task, protocol, tool, target, capability, arguments]`,
 * with a continuation appended where the action carries one.
 */
export function fingerprint(action: ActionEnvelope): string {
  const bound: Json[] = [
    "approval-fingerprint-v1",
    action.tenant,
    action.principal.id,
    action.session.id,
    action.task,
    action.protocol,
    action.tool,
    action.target,
    action.capability,
    action.arguments,
  ];
  if (action.continuation !== undefined) bound.push(action.continuation);
  return `sha256:${sha256Hex(canonicalJson(bound))}`;
}
