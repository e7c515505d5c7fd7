/** Half-open range of keys. */
export interface KeyRange {
  readonly gte: string;
  readonly lt: string;
}

/** The entry of one approval; ids are in the order in which the approvals were asked for. */
export function approvalKey(tenant: string, id: string): string {
  return `${prefix(tenant)}approval/${id}`;
}

export function approvalRange(tenant: string): KeyRange {
  return range(`${prefix(tenant)}approval/`);
}

/** Present while the approval is pending or approved. */
export function liveKey(tenant: string, id: string): string {
  return `${prefix(tenant)}approval-live/${id}`;
}

export function liveRange(tenant: string): KeyRange {
  return range(`${prefix(tenant)}approval-live/`);
}

/** Present from a break-glass use until its post-mortem. */
export function breakGlassKey(tenant: string, id: string): string {
  return `${prefix(tenant)}break-glass/${id}`;
}

export function breakGlassRange(tenant: string): KeyRange {
  return range(`${prefix(tenant)}break-glass/`);
}

/** Percent-encoding is injective and leaves no `/`: no two tenants share a key. */
function prefix(tenant: string): string {
  return `${encodeURIComponent(tenant)}/`;
}

function range(start: string): KeyRange {
  return { gte: start, lt: `${start.slice(0, -1)}0` }; // "0" follows "/"
}
