import { isIPv4 } from "node:net";
import { withoutBrackets } from "../action/parsed-url.ts";
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

/** Adds a fault where the secret of `setting` would go over the network unencrypted. */
export function requireEncryption(address: string, path: string, setting: string, faults: FaultList): void {
  const { protocol, hostname } = new URL(address);
  if (protocol === "https:" || isLoopback(withoutBrackets(hostname))) return;
  faults.add(path, `expected an https: URL, or one of this machine, because \`${setting}\` is given`);
}
