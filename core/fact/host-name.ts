import { domainToUnicode } from "node:url";
import type { UrlZone } from "../action/action-fact.ts";
import { ipv6Bytes, octet } from "./ip-text.ts";
import { zoneOfIp } from "./ip-zone.ts";
import { hasUnseen, misleads } from "./name-sign.ts";

/** The names, and the ends of names, that say where they lead. */
const zoneByName: ReadonlyMap<string, UrlZone> = new Map<string, UrlZone>([
  ...entries("metadata", [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.azure.internal",
    "metadata.azure.com",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "api.metadata.cloud.ibm.com",
    "rancher-metadata",
  ]),
  ...entries("loopback", [
    "localhost",
    "localhost.localdomain",
    "localhost6",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
    "loopback",
    // Public names whose address is 127.0.0.1 for everybody.
    "localtest.me",
    "lvh.me",
    "vcap.me",
    "lacolhost.com",
    "fuf.me",
    "localh.st",
    "yoogle.com",
    "spoofed.burpcollaborator.net",
    "bugbounty.dod.network",
    "127-0-0-1.org.uk",
  ]),
  ...entries("private", [
    "local",
    "internal",
    "intranet",
    "intra",
    "intern",
    "domain",
    "dmz",
    "vpn",
    "mail",
    "lan",
    "home",
    "corp",
    "private",
    "localdomain",
    "workgroup",
    "home.arpa",
    "test",
    "svc",
    "consul",
    "docker",
    "ts.net",
    "fritz.box",
    "routerlogin.net",
    "tplinkwifi.net",
  ]),
  ...entries("reserved", ["invalid", "onion", "i2p", "alt", "arpa"]),
]);

function entries(zone: UrlZone, names: readonly string[]): readonly (readonly [string, UrlZone])[] {
  return names.map((name) => [name, zone]);
}

/** Domains whose names lead to the address that is written in them. */
const carrierDomains: readonly string[] = [
  "nip.io",
  "sslip.io",
  "xip.io",
  "traefik.me",
  "backname.io",
  "local-ip.co",
  "local-ip.sh",
  "local-ip.medicmobile.org",
  "localdomain.pw",
  "xip.name",
];

/** Domains whose names lead to one address and, asked again, to another. */
const rebindingDomains: readonly string[] = ["1u.ms", "rbndr.us", "rebind.network", "rebind.it"];

export interface HostName {
  readonly zone: UrlZone;
  /** True where two readers could disagree about the name, or it says that it leads to several places. */
  readonly odd: boolean;
}

const maxName = 253;
const maxLabel = 63;

/** Reads a name in lower case, as `URL` writes it (`xn--…`), without a final dot. */
export function readHostName(name: string): HostName {
  if (name.length > maxName) return { zone: "reserved", odd: true };
  const labels = name.split(".");
  const odd = labels.some(isOddLabel);
  const listed = listedNameZone(labels);
  if (listed !== undefined) return { zone: listed, odd };
  if (labels.length === 1) return { zone: "private", odd };
  if (endsIn(name, rebindingDomains)) return { zone: carriedZone(labels) ?? "name", odd: true };
  if (!endsIn(name, carrierDomains)) return { zone: writtenZone(labels) ?? "name", odd };
  const carried = carriedZone(labels);
  return { zone: carried ?? "name", odd: odd || carried === undefined };
}

function listedNameZone(labels: readonly string[]): UrlZone | undefined {
  for (let at = 0; at < labels.length; at++) {
    const zone = zoneByName.get(labels.slice(at).join("."));
    // `metadata.example` is another name than `metadata`, and so are names below it.
    if (zone !== undefined && (at === 0 || zone !== "metadata")) return zone;
  }
  return undefined;
}

function endsIn(name: string, domains: readonly string[]): boolean {
  return domains.some((domain) => name === domain || name.endsWith(`.${domain}`));
}

function isOddLabel(label: string): boolean {
  if (label === "" || label.length > maxLabel || label.startsWith("-") || label.endsWith("-")) return true;
  if (!/^[a-z0-9_-]+$/.test(label)) return true;
  if (!label.startsWith("xn--")) return false;
  const written = domainToUnicode(label);
  return written === "" || written === label || hasUnseen(written) || misleads(written);
}

/** The zones that no public name leads to by chance. */
const closedZones: ReadonlySet<UrlZone> = new Set<UrlZone>(["metadata", "loopback", "link_local", "private"]);

/** Returns the zone of an address that is written into a name of any domain (`10.0.0.1.…`, `ip-10-0-0-1.…`) where it is closed. */
function writtenZone(labels: readonly string[]): UrlZone | undefined {
  return [labels, ...labels.map((label) => label.split("-"))]
    .flatMap(runsOfFour)
    .map((address) => zoneOfIp(address).zone)
    .find((zone) => closedZones.has(zone));
}

/** Returns the zone that a domain of `carrierDomains` leads to: of several addresses, one that is not public. */
function carriedZone(labels: readonly string[]): UrlZone | undefined {
  const addresses = [...runsOfFour(labels), ...labels.flatMap(addressesIn)];
  const zones = addresses.map((address) => zoneOfIp(address).zone);
  return zones.find((zone) => zone !== "public") ?? zones[0];
}

/** Returns the addresses that a label writes as `10-0-0-1`, `0a000001` or, for IPv6, `2606-4700--1111`. */
function addressesIn(label: string): readonly string[] {
  const parts = label.split("-");
  const hex = parts.filter((part) => /^(?:0x)?[0-9a-f]{8}$/.test(part)).map((part) => ipv4OfHex(part.slice(-8)));
  const ipv6 = parts.join(":");
  return [...runsOfFour(parts), ...hex, ...(ipv6Bytes(ipv6) === undefined ? [] : [ipv6])];
}

/** Returns each four neighbours that are the numbers of an IPv4 address. */
function runsOfFour(parts: readonly string[]): readonly string[] {
  const found: string[] = [];
  for (let at = 0; at + 4 <= parts.length; at++) {
    const four = parts.slice(at, at + 4);
    if (four.every((part) => octet(part) !== -1)) found.push(four.join("."));
  }
  return found;
}

function ipv4OfHex(hex: string): string {
  return [0, 2, 4, 6].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).join(".");
}
