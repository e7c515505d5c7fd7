import { isIPv4 } from "node:net";
import { type FaultList, quoteInput } from "./fault.ts";

/**
 * Adds a fault for each value that an earlier one equals; `undefined` is no value.
 * `shown` stands for a value that must not be printed.
 */
export function refuseRepeats(
  values: readonly (string | number | undefined)[],
  pathOf: (index: number) => string,
  expected: string,
  faults: FaultList,
  shown?: string,
): void {
  const first = new Map<string | number, number>();
  values.forEach((value, index) => {
    if (value === undefined) return;
    const earlier = first.get(value);
    if (earlier === undefined) first.set(value, index);
    else {
      const got = shown ?? quoteInput(String(value));
      faults.add(pathOf(index), `expected ${expected}, got ${got} that \`${pathOf(earlier)}\` has`);
    }
  });
}

/** Returns whether only this machine can reach the address. Names other than `localhost` may resolve to anything. */
export function isLoopback(host: string): boolean {
  return host === "::1" || host.toLowerCase() === "localhost" || (isIPv4(host) && host.startsWith("127."));
}
