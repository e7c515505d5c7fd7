import { canonicalJson, sha256Hex } from "./canonical-json.ts";
import type { ActionEnvelope } from "./envelope.ts";
import type { Json } from "./json.ts";

/**
 * The fingerprint that an approval is bound to: `sha256:<hex>` over the RFC 8785 bytes of
 * `["approval-fingerprint-v1", tenant, principal, session, task, protocol, tool, target, capability, arguments]`,
 * with a continuation appended where the action carries one.
 */
export function fingerprint(action: ActionEnvelope): string {
  return digestOf("approval-fingerprint-v1", action, action.arguments, action.continuation);
}

/**
 * The fingerprint that an approval of scope `task` is bound to: the same under the name `approval-task-fingerprint-v1`, with
 * the type of each string, number, boolean and null in place of its value. Names and number of members stay bound.
 */
export function taskFingerprint(action: ActionEnvelope): string {
  const { arguments: args, continuation } = action;
  const shape = continuation === undefined ? undefined : shapeOf(continuation);
  return digestOf("approval-task-fingerprint-v1", action, shapeOf(args), shape);
}

function digestOf(name: string, action: ActionEnvelope, args: Json, continuation: Json | undefined): string {
  const bound: Json[] = [
    name,
    action.tenant,
    action.principal.id,
    action.session.id,
    action.task,
    action.protocol,
    action.tool,
    action.target,
    action.capability,
    args,
  ];
  if (continuation !== undefined) bound.push(continuation);
  return `sha256:${sha256Hex(canonicalJson(bound))}`;
}

function shapeOf(value: Json): Json {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shapeOf(member)]));
}
