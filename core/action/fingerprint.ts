import type { ApprovalScope } from "./approval.ts";
import { canonicalSha256, canonicalSha256InTurns } from "./canonical-json.ts";
import type { ActionEnvelope } from "./envelope.ts";
import type { Json } from "./json.ts";
import type { Turns } from "./turns.ts";

/**
 * The fingerprint that an approval of a scope is bound to: `sha256:<hex>` over the RFC 8785 bytes of
 * `["approval-fingerprint-v1", tenant, principal, session, task, protocol, tool, target, capability, arguments]`,
 * with a continuation appended where the action carries one. Of scope `task` the name is `approval-task-fingerprint-v1`, and
 * the type of each string, number, boolean and null takes the place of its value: names and number of members stay bound.
 */
export function fingerprint(action: ActionEnvelope, scope: ApprovalScope = "exact"): string {
  return `sha256:${canonicalSha256(boundBy(action, scope))}`;
}

/** The same, in turns. */
export async function fingerprintInTurns(action: ActionEnvelope, turns: Turns, scope?: ApprovalScope): Promise<string> {
  return `sha256:${await canonicalSha256InTurns(boundBy(action, scope ?? "exact"), turns)}`;
}

function boundBy(action: ActionEnvelope, scope: ApprovalScope): Json {
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
  return bound;
}

function shapeOf(value: Json): Json {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shapeOf(member)]));
}
