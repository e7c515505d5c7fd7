/** What an object, a list or a text takes beside what is in it; no more than a guess at what an engine takes. */
const overhead = 24;

/**
 * About how many bytes of memory a value holds that is made of JSON and nothing else: what is shared counts each time. Stops
 * at `most`: the answer is then more than that, and no more work was done than that took.
 */
export function weigh(value: unknown, most: number): number {
  let weight = 0;
  const open: unknown[] = [value];
  for (let next = open.pop(); weight <= most && next !== undefined; next = open.pop()) {
    weight += overhead;
    if (typeof next === "string") weight += next.length * 2;
    if (typeof next !== "object" || next === null) continue;
    if (Array.isArray(next)) for (const item of next as readonly unknown[]) open.push(item ?? null);
    else weight += pushMembers(next, open);
  }
  return weight;
}

/** Returns what their names take. */
function pushMembers(value: object, open: unknown[]): number {
  let length = 0;
  for (const [name, member] of Object.entries(value) as [string, unknown][]) {
    length += name.length;
    open.push(member ?? null);
  }
  return length;
}
