/** Half-open range of the keys that start with a prefix ending in `/`. */
export interface KeyRange {
  readonly gte: string;
  readonly lt: string;
}

/** A tenant's part of the key space. Percent-encoding is injective and leaves no `/`, so no two tenants share a key. */
export function tenantPrefix(tenant: string): string {
  return `${encodeURIComponent(tenant)}/`;
}

/** Every key that starts with `prefix`, which ends in `/`. */
export function rangeOf(prefix: string): KeyRange {
  return { gte: prefix, lt: `${prefix.slice(0, -1)}0` }; // "0" follows "/"
}

/** Returns the part of a key after its last `/`. */
export function lastPart(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}
