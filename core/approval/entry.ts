import { type Approval, approvalScopes, approvalStates, isFinal } from "../kernel/approval.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";
import type { Operation } from "../kernel/operation.ts";
import { approvalKey, liveKey } from "./key-space.ts";

/** What makes `approval` the stored one. */
export function putEntry(approval: Approval): readonly Operation[] {
  const { id, tenant, state } = approval;
  const live = liveKey(tenant, id);
  return [
    { type: "put", key: approvalKey(tenant, id), value: JSON.stringify(approval) },
    isFinal(state) ? { type: "del", key: live } : { type: "put", key: live, value: "" },
  ];
}

/**
 * An approval from its stored text; undefined for one that is not bound to an identity in full, as entries of former
 * versions and of other hands are not.
 */
export function readEntry(text: string, tenant: string, id: string): Approval | undefined {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  return isBound(value) && value.tenant === tenant && value.id === id ? (value as unknown as Approval) : undefined;
}

function isBound(value: Json): value is { readonly [member: string]: Json } {
  if (!isJsonObject(value)) return false;
  const { principal, session, action, bound, evaluation } = value;
  const texts = [value.fingerprint, value.task_fingerprint, value.requested_at, value.expires_at];
  return (
    texts.every(isText) &&
    hasTexts(principal, ["id", "key_id", "role"]) &&
    hasTexts(session, ["id", "transport"]) &&
    hasTexts(action, ["capability", "id", "protocol", "target", "tool"]) &&
    hasTexts(evaluation, ["id"]) &&
    isJsonObject(bound) &&
    Array.isArray(bound.policies) &&
    Array.isArray(value.endorsements) &&
    [value.held_seq, value.required].every(isCount) &&
    (approvalStates as readonly Json[]).includes(value.state ?? null) &&
    (approvalScopes as readonly Json[]).includes(value.scope ?? null)
  );
}

function hasTexts(value: Json | undefined, members: readonly string[]): boolean {
  return isJsonObject(value) && members.every((member) => isText(value[member]));
}

function isText(value: Json | undefined): boolean {
  return typeof value === "string" && value !== "";
}

function isCount(value: Json | undefined): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
