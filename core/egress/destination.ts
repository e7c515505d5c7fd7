import { isIP } from "node:net";
import type { UrlZone } from "../action/action-fact.ts";
import { withoutBrackets } from "../action/parsed-url.ts";
import { readHostName } from "../fact/host-name.ts";

/** The origin of a host: the operator's own text, or an answer of another party, such as an issuer's metadata. */
export type HostSource = "configuration" | "answer";

/** The end of a connection as it is written, before any look-up. */
export interface Destination {
  /** In lower case, without brackets and without a final dot. */
  readonly host: string;
  readonly port: number;
  /** The zones in which its addresses may lie. No destination has `metadata`. */
  readonly zones: ReadonlySet<UrlZone>;
}

const publicZones: ReadonlySet<UrlZone> = new Set<UrlZone>(["public"]);
/** A name of one's own network may stand for a public address, and for this machine. */
const innerZones: ReadonlySet<UrlZone> = new Set<UrlZone>(["public", "private", "loopback"]);
const loopbackZones: ReadonlySet<UrlZone> = new Set<UrlZone>(["loopback"]);
const statedZones: ReadonlySet<UrlZone> = new Set<UrlZone>(["public", "private", "loopback", "link_local", "reserved"]);

/** Returns the destination of an http: or https: URL. */
export function destinationOf(url: URL, source: HostSource, privateHosts: PrivateHosts): Destination {
  const host = plainHost(url.hostname);
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return { host, port, zones: privateHosts.has(host) ? statedZones : zonesOf(host, source) };
}

function zonesOf(host: string, source: HostSource): ReadonlySet<UrlZone> {
  if (source === "answer") return publicZones;
  if (isIP(host) !== 0) return statedZones;
  const { zone } = readHostName(host);
  if (zone === "loopback") return loopbackZones;
  return zone === "private" ? innerZones : publicZones;
}

/** The hosts of `egress.private_hosts`: names, addresses, and `*.` with the domain of all names below it. */
export class PrivateHosts {
  readonly #hosts: ReadonlySet<string>;
  readonly #domains: readonly string[];

  constructor(patterns: readonly string[]) {
    const isDomain = (pattern: string): boolean => pattern.startsWith("*.");
    this.#hosts = new Set(patterns.filter((pattern) => !isDomain(pattern)).map(canonicalHost));
    this.#domains = patterns.filter(isDomain).map((pattern) => `.${canonicalHost(pattern.slice(2))}`);
  }

  has(host: string): boolean {
    return this.#hosts.has(host) || this.#domains.some((domain) => host.endsWith(domain));
  }
}

/** Returns a host as `URL` writes it. */
function canonicalHost(host: string): string {
  return plainHost(new URL(`http://${isIP(host) === 6 ? `[${host}]` : host}`).hostname);
}

function plainHost(hostname: string): string {
  return withoutBrackets(hostname).replace(/\.$/, "");
}
