/** Returns the one value of a member of a query; empty where it has none, or several. */
export function valueIn(query: URLSearchParams, name: string): string {
  const values = query.getAll(name);
  return values.length === 1 ? String(values[0]) : "";
}
