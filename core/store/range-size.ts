import type { KeyRange } from "./key-range.ts";
import type { Store } from "./open.ts";

interface Sizer {
  approximateSize(start: string, end: string): Promise<number>;
}

/** Returns the bytes that a range takes in the store's tables, about: what lies in the log is not counted. 0 in memory. */
export async function sizeOfRange(store: Store, { gte, lt }: KeyRange): Promise<number> {
  return hasTables(store) ? store.approximateSize(gte, lt) : 0;
}

/** Only the engine on disk has the method. */
function hasTables(store: Store): store is Store & Sizer {
  return store.supports.additionalMethods.approximateSize === true;
}
