import { type KeyRange, rangeOf, tenantPrefix } from "../kernel/tenant-key.ts";

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
