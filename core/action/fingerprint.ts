import type { ApprovalScope } from "./approval.ts";
import { canonicalSha256 } from "./canonical-json.ts";
import type { ActionEnvelope } from "./envelope.ts";
import type { Json } from "./json.ts";

/**
 * The fingerprint that an approval of a scope is bound to: `sha256:<hex>` over the RFC 8785 bytes of
 * `["approval-fingerprint-v1", tenant, principal, session, task, protocol, tool, target, capability, arguments]`,
 * with a continuation appended where the action carries one. Of scope `task` the name is `approval-task-fingerprint-v1`, and
 * the type of each string, number, boolean and null takes the place of its value: names and number of members stay bound.
 */
export function fingerprint(action: ActionEnvelope, scope: ApprovalScope = "exact"): string {
  const { arguments: args, continuation } = action;
  const bound: Json[] = [
    scope === "exact" ? "approval-fingerprint-v1" : "approval-task-fingerprint-v1",
    action.tenant,
    action.principal.id,
    action.session.id,
    action.task,
    action.protocol,
    action.tool,
    action.target,
    action.capability,
    scope === "exact" ? args : shapeOf(args),
  ];
  if (continuation !== undefined) bound.push(scope === "exact" ? continuation : shapeOf(continuation));
  return `sha256:${canonicalSha256(bound)}`;
}

function shapeOf(value: Json): Json {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shapeOf(member)]));
}
