import { BlockList } from "node:net";
import type { UrlZone } from "../action/action-fact.ts";
import { ipv4Bytes, ipv6Bytes } from "./ip-text.ts";

/**
 * The special-purpose registries of IANA for IPv4 and IPv6, and the addresses at which clouds serve credentials. The first
 * zone with a matching block decides.
 */
const blocksByZone: readonly (readonly [UrlZone, readonly string[]])[] = [
  [
    "metadata",
    [
      "169.254.169.254/32", // AWS, Azure, Google, DigitalOcean, OpenStack and most others
      "169.254.170.2/32", // AWS ECS
      "169.254.170.23/32", // AWS EKS
      "169.254.0.23/32", // Tencent
      "169.254.42.42/32", // Scaleway
      "100.100.100.200/32", // Alibaba
      "192.0.0.192/32", // Oracle
      "168.63.129.16/32", // Azure's WireServer
      "fd00:ec2::254/128", // AWS
      "fd00:ec2::23/128", // AWS EKS
      "fd20:ce::254/128", // Google
      "fd00:c1::a9fe:a9fe/128", // Oracle
      "fd00:42::42/128", // Scaleway
    ],
  ],
  [
    "public",
    [
      "192.0.0.9/32", // PCP anycast
      "192.0.0.10/32", // TURN anycast
      "192.31.196.0/24", // AS112
      "192.52.193.0/24", // AMT
      "192.175.48.0/24", // AS112
      "2001:1::1/128", // PCP anycast
      "2001:1::2/128", // TURN anycast
      "2001:1::3/128", // DNS-SD SRP anycast
      "2001:3::/32", // AMT
      "2001:4:112::/48", // AS112
      "2620:4f:8000::/48", // AS112
    ],
  ],
  ["loopback", ["127.0.0.0/8", "0.0.0.0/32", "::1/128", "::/128"]],
  ["link_local", ["169.254.0.0/16", "fe80::/10"]],
  ["private", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"]],
  [
    "reserved",
    [
      "0.0.0.0/8", // this network
      "192.0.0.0/24", // IETF protocol assignments
      "192.0.2.0/24", // documentation
      "192.88.99.0/24", // 6to4 relays, deprecated
      "198.18.0.0/15", // benchmarks
      "198.51.100.0/24", // documentation
      "203.0.113.0/24", // documentation
      "224.0.0.0/4", // multicast
      "240.0.0.0/4", // future use, and broadcast
      "100::/64", // discard
      "100:0:0:1::/64", // dummy prefix
      "2001::/23", // IETF protocol assignments, Teredo, ORCHID, benchmarks, drones
      "2001:db8::/32", // documentation
      "3fff::/20", // documentation
      "5f00::/16", // segment routing
      "ff00::/8", // multicast
    ],
  ],
  // Of IPv6 only this block is assigned to anybody as unicast addresses.
  ["public", ["0.0.0.0/0", "2000::/3"]],
];

const zoneLists: readonly (readonly [UrlZone, BlockList])[] = blocksByZone.map(([zone, blocks]) => [
  zone,
  listOf(blocks),
]);

function listOf(blocks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const block of blocks) {
    const [address = "", bits] = block.split("/");
    list.addSubnet(address, Number(bits), address.includes(":") ? "ipv6" : "ipv4");
  }
  return list;
}

/** Returns the zone of an address by its blocks alone. */
function listedZone(address: string, family: "ipv4" | "ipv6"): UrlZone {
  return zoneLists.find(([, list]) => list.check(address, family))?.[0] ?? "reserved";
}

/** The zone of an address; `embeds` is true where it is an IPv6 address that stands for an IPv4 address. */
export interface IpZone {
  readonly zone: UrlZone;
  readonly embeds: boolean;
}

/** Returns the zone of an IPv4 or IPv6 address, a zone id included (`fe80::1%eth0`); `reserved` for any other text. */
export function zoneOfIp(address: string): IpZone {
  if (ipv4Bytes(address) !== undefined) return { zone: listedZone(address, "ipv4"), embeds: false };
  const [plain = ""] = address.split("%", 1);
  const bytes = ipv6Bytes(plain);
  if (bytes === undefined) return { zone: "reserved", embeds: false };
  const embedded = embeddedIpv4(bytes);
  if (embedded === undefined) return { zone: listedZone(plain, "ipv6"), embeds: false };
  const inner = listedZone(embedded.bytes.join("."), "ipv4");
  return { zone: inner === "public" ? embedded.outer : inner, embeds: true };
}

interface EmbeddedIpv4 {
  readonly bytes: readonly number[];
  /** The zone where the inner address is public. */
  readonly outer: UrlZone;
}

/** Prefixes, as hexadecimal digits, of addresses that carry an IPv4 address from byte `at`. */
const carriers: readonly { readonly prefix: string; readonly at: number; readonly outer: UrlZone }[] = [
  { prefix: "00000000000000000000ffff", at: 12, outer: "public" }, // IPv4-mapped
  { prefix: "0000000000000000ffff0000", at: 12, outer: "reserved" }, // IPv4-translated
  { prefix: "0064ff9b0000000000000000", at: 12, outer: "public" }, // NAT64
  { prefix: "0064ff9b0001", at: 12, outer: "private" }, // NAT64 of a local network
  { prefix: "2002", at: 2, outer: "public" }, // 6to4
];

function embeddedIpv4(bytes: readonly number[]): EmbeddedIpv4 | undefined {
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const carrier = carriers.find(({ prefix }) => hex.startsWith(prefix));
  if (carrier !== undefined) return { bytes: bytes.slice(carrier.at, carrier.at + 4), outer: carrier.outer };
  const last = bytes.slice(12);
  // IPv4-compatible, deprecated; `::` and `::1` are addresses of their own.
  if (hex.startsWith("000000000000000000000000") && !/^0{31}[01]$/.test(hex)) return { bytes: last, outer: "reserved" };
  // Teredo hides the client's address by inverting it.
  if (hex.startsWith("20010000")) return { bytes: last.map((byte) => byte ^ 0xff), outer: "reserved" };
  const isIsatap = hex.startsWith("00005efe", 16) || hex.startsWith("02005efe", 16);
  return isIsatap ? { bytes: last, outer: "reserved" } : undefined;
}
