import { canonicalJson, sha256Hex } from "./canonical-json.ts";
import type { ActionEnvelope } from "./envelope.ts";
import type { Json } from "./json.ts";

/**
 * The fingerprint that an approval is bound to: `sha256:<hex>` over the RFC 8785 bytes of
 * `["approval-fingerprint-v1", tenant, principal, session, task, protocol, tool, target, capability, arguments]`,
 * with a continuation appended where the action carries one.
 */
export function fingerprint(action: ActionEnvelope): string {
  return digestOf("approval-fingerprint-v1", action, (value) => value);
}

/**
 * The fingerprint that an approval of scope `task` is bound to: the same under the name `approval-task-fingerprint-v1`, with
 * the type of each string, number, boolean and null in place of its value. Names and number of members stay bound.
 */
export function taskFingerprint(action: ActionEnvelope): string {
  return digestOf("approval-task-fingerprint-v1", action, shapeOf);
}

function digestOf(name: string, action: ActionEnvelope, view: (value: Json) => Json): string {
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
    view(action.arguments),
  ];
  if (action.continuation !== undefined) bound.push(view(action.continuation));
  return `sha256:${sha256Hex(canonicalJson(bound))}`;
}

function shapeOf(value: Json): Json {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shapeOf(member)]));
}
