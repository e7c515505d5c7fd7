import { type Approval, approvalScopes, approvalStates, isFinal } from "../action/approval.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import { isJsonObject, type Json, type JsonObject, parseKept } from "../action/json.ts";
import { type KeyRange, rangeOf, tenantPrefix } from "../store/key-range.ts";

/** Computes the HMAC of an entry with the key of its tenant's chain. */
export type Seal = (text: string) => string;

/** Returns the operations that store `approval`. */
export function putEntry(approval: Approval, seal: Seal): readonly BatchOperation[] {
  const { id, tenant, state } = approval;
  const live = liveKey(tenant, id);
  return [
    {
      type: "put",
      key: approvalKey(tenant, id),
      value: JSON.stringify({ ...approval, seal: seal(JSON.stringify(approval)) }),
    },
    isFinal(state) ? { type: "del", key: live } : { type: "put", key: live, value: "" },
  ];
}

/**
 * Parses a stored entry, or returns why it is invalid: entries of former versions and forged ones are not bound to an
 * identity; changed ones do not match their seal.
 */
export function readEntry(
  text: string,
  tenant: string,
  id: string,
  seal: Seal,
): Approval | "identity_not_bound" | "contradicted_by_evidence" {
  const value = parseKept(text);
  if (!isJsonObject(value)) return "identity_not_bound";
  const { seal: sealed, ...approval } = value;
  if (sealed === undefined || !isBound(approval)) return "identity_not_bound";
  const isOwn = approval.tenant === tenant && approval.id === id && seal(JSON.stringify(approval)) === sealed;
  return isOwn ? (approval as unknown as Approval) : "contradicted_by_evidence";
}

function isBound(value: JsonObject): boolean {
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

/** The key of an approval; ids sort by the time of the request. */
export function approvalKey(tenant: string, id: string): string {
  return `${tenantPrefix(tenant)}approval/${id}`;
}

export function approvalRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}approval/`);
}

/** The key that exists while the approval is pending or approved. */
export function liveKey(tenant: string, id: string): string {
  return `${tenantPrefix(tenant)}approval-live/${id}`;
}

export function liveRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}approval-live/`);
}

/** The key that exists from a break-glass use until its post-mortem. */
export function breakGlassKey(tenant: string, id: string): string {
  return `${tenantPrefix(tenant)}break-glass/${id}`;
}

export function breakGlassRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}break-glass/`);
}
