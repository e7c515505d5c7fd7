import { isIPv4 } from "node:net";

/** Whether only this machine reaches the address. Names other than `localhost` may resolve to anything. */
export function isLoopback(host: string): boolean {
  return host === "::1" || host.toLowerCase() === "localhost" || (isIPv4(host) && host.startsWith("127."));
}
