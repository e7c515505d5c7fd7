const shape = /^(\d{4}-\d\d-\d\d)[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;

/**
 * Returns an RFC 3339 time in the form that records have, milliseconds and UTC; undefined for any other text, and for days
 * that their month does not have: Date shifts them. Calls `refuse` for a time after `nowMs`.
 */
export function readPastTime(text: string, nowMs: number, refuse: () => never): string | undefined {
  const [, day = ""] = shape.exec(text) ?? [];
  const dayMs = Date.parse(`${day}T00:00:00Z`);
  const ms = Date.parse(text);
  if (day === "" || Number.isNaN(dayMs) || Number.isNaN(ms)) return undefined;
  if (!new Date(dayMs).toISOString().startsWith(day)) return undefined;
  return ms > nowMs ? refuse() : new Date(ms).toISOString();
}
