import { BlockList, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { zoneOfIp } from "../fact/ip-zone.ts";

/** Returns whether a connection to the address stays on this machine: loopback, unspecified, or an address of its interfaces. */
export function isOwnAddress(address: string): boolean {
  if (zoneOfIp(address).zone === "loopback") return true;
  const own = new BlockList();
  for (const { address: each } of Object.values(networkInterfaces()).flatMap((found) => found ?? [])) {
    own.addAddress(withoutZone(each), familyOf(each));
  }
  // A list of IPv4 addresses has their IPv4-mapped forms as well.
  return own.check(withoutZone(address), familyOf(address));
}

function withoutZone(address: string): string {
  return address.split("%", 1)[0] as string;
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv6(address) ? "ipv6" : "ipv4";
}
