import { type Approval, approvalScopes, approvalStates, isFinal } from "../action/approval.ts";
import type { BatchOperation } from "../action/commit-hook.ts";
import { isJsonObject, type Json, type JsonObject, parseKept } from "../action/json.ts";
import { type KeyRange, rangeOf, tenantPrefix } from "../store/key-range.ts";

/** Vouches for the text of an entry with the key of its tenant's chain. */
export type Seal = (text: string) => string;

/** What makes `approval` the stored one. */
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
 * An approval from its stored text, or why it is none: entries of former versions, and of other hands, are not bound to
 * an identity; those that were changed say something else than what was sealed.
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

/** The entry of one approval; ids are in the order in which the approvals were asked for. */
export function approvalKey(tenant: string, id: string): string {
  return `${tenantPrefix(tenant)}approval/${id}`;
}

export function approvalRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}approval/`);
}

/** Present while the approval is pending or approved. */
export function liveKey(tenant: string, id: string): string {
  return `${tenantPrefix(tenant)}approval-live/${id}`;
}

export function liveRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}approval-live/`);
}

/** Present from a break-glass use until its post-mortem. */
export function breakGlassKey(tenant: string, id: string): string {
  return `${tenantPrefix(tenant)}break-glass/${id}`;
}

export function breakGlassRange(tenant: string): KeyRange {
  return rangeOf(`${tenantPrefix(tenant)}break-glass/`);
}
