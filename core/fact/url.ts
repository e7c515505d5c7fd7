import { domainToASCII } from "node:url";
import type { UrlFact } from "../action/action-fact.ts";
import { parsedUrl } from "../action/parsed-url.ts";
import { readHostName } from "./host-name.ts";
import { ipv4Bytes, ipv6Bytes } from "./ip-text.ts";
import { zoneOfIp } from "./ip-zone.ts";
import { readStrictUrl, type StrictUrl } from "./strict-url.ts";

/** Characters of a text that is read; a longer one is no URL. */
const maxText = 16_384;

/** A text that no client connects by, as far as can be told. */
const noUrl: UrlFact = { scheme: "", host: "", zone: "reserved", port: 0, userinfo: false, odd: true };

/**
 * Reads a URL as WHATWG's `URL` does, and once more as RFC 3986 has it: where they differ, or others are known to, it is
 * `odd`. Never throws. Sees the text alone: not where a name resolves to, and not where an answer redirects to.
 */
export function readUrl(text: string): UrlFact {
  if (text.length > maxText) return noUrl;
  const url = lacksScheme(text) ? undefined : parsedUrl(text);
  if (url !== undefined) return factOf(url, readStrictUrl(text));
  // A client may put `http:` before it.
  const repaired = parsedUrl(`http://${text.replace(/^[\s/\\]+/, "")}`);
  return repaired === undefined ? noUrl : { ...factOf(repaired, undefined), scheme: "" };
}

/** Returns true for `localhost:80` and `evil.example:80/x`, of which `URL` takes the host for a scheme. */
function lacksScheme(text: string): boolean {
  return /^(?:localhost|[a-z0-9-]*\.[a-z0-9.-]*):\d/i.test(text);
}

function factOf(url: URL, strict: StrictUrl | undefined): UrlFact {
  const scheme = url.protocol.slice(0, -1);
  const userinfo = url.username !== "" || url.password !== "" || (strict?.userinfo ?? null) !== null;
  const { host, zone, address, odd } = readHost(url);
  return {
    scheme,
    host,
    ...(address === undefined ? {} : { address }),
    zone,
    port: portOf(url, scheme),
    userinfo,
    odd: odd || strict === undefined || !agrees(url, host, strict) || isOddText(strict),
  };
}

const ports: Readonly<Record<string, number>> = {
  http: 80,
  https: 443,
  ws: 80,
  wss: 443,
  ftp: 21,
  ftps: 990,
  sftp: 22,
  ssh: 22,
  git: 9418,
  gopher: 70,
  dict: 2628,
  ldap: 389,
  ldaps: 636,
  telnet: 23,
  smtp: 25,
  imap: 143,
  pop3: 110,
  rtsp: 554,
  redis: 6379,
  postgresql: 5432,
  postgres: 5432,
  mysql: 3306,
  mongodb: 27_017,
  amqp: 5672,
};

function portOf(url: URL, scheme: string): number {
  return url.port === "" ? (Object.hasOwn(ports, scheme) ? (ports[scheme] as number) : 0) : Number(url.port);
}

type Host = Pick<UrlFact, "host" | "zone" | "odd"> & { readonly address?: string };

/** Schemes without a host that reach the machine of the client. */
const localSchemes: ReadonlySet<string> = new Set(["file", "unix", "http+unix", "npipe"]);

function readHost(url: URL): Host {
  const scheme = url.protocol.slice(0, -1);
  const written = url.hostname;
  if (written === "") return { host: "", zone: localSchemes.has(scheme) ? "loopback" : "reserved", odd: false };
  // `URL` reads addresses and names of the schemes it knows alone.
  const host = written.startsWith("[") ? written : (parsedUrl(`http://${written}`)?.hostname ?? "");
  if (host === "") return { host: written, zone: "reserved", odd: true };
  const read = readPlainHost(host);
  return host === written || host === written.toLowerCase() ? read : { ...read, odd: true };
}

function readPlainHost(host: string): Host {
  if (host.startsWith("[")) {
    const address = host.slice(1, -1);
    const { zone, embeds } = zoneOfIp(address);
    return { host: address, address, zone, odd: embeds };
  }
  if (ipv4Bytes(host) !== undefined) return { host, address: host, zone: zoneOfIp(host).zone, odd: false };
  const hasFinalDot = host.endsWith(".");
  const name = hasFinalDot ? host.slice(0, -1) : host;
  const { zone, odd } = readHostName(name);
  return { host: name, zone, odd: odd || hasFinalDot };
}

/** Returns whether both readers go to the same place. */
function agrees(url: URL, host: string, strict: StrictUrl): boolean {
  if (`${strict.scheme}:` !== url.protocol) return false;
  if (strict.host === null || strict.host === "") return host === "" && url.port === "";
  const writtenPort = strict.port === null || portOf(url, strict.scheme) === strict.port;
  return writtenPort && isSameHost(host, strict);
}

function isSameHost(host: string, { host: written, isIpv6 }: StrictUrl): boolean {
  if (written === null) return false;
  if (isIpv6) return ipv6Bytes(written)?.join() === ipv6Bytes(host)?.join() && ipv6Bytes(host) !== undefined;
  // An address in another form is one that another reader looks up.
  return written === host || (!/^[ -~]*$/.test(written) && domainToASCII(written) === host);
}

/** Returns true for parts that readers of both kinds pass on, and that others take for something else. */
function isOddText({ userinfo, path, rest, host }: StrictUrl): boolean {
  // Readers of old look for `@` first: `http://good.example?@evil.example`.
  if (host !== null && path === "" && rest.includes("@")) return true;
  return (userinfo !== null && isOddUser(userinfo)) || isOddPath(path);
}

/** Returns true for a user that looks like a host, a port or an escape: `good.example@evil.example`. */
function isOddUser(userinfo: string): boolean {
  return (
    userinfo === "" || !/^[A-Za-z0-9_~+-]+(?::[A-Za-z0-9_~+=-]*)?$/.test(userinfo) || /:\d*$|^localhost/i.test(userinfo)
  );
}

const maxDecoding = 3;

/** Returns true for dot segments, and for escapes of line ends and NUL: readers resolve them, pass them on or stop there. */
function isOddPath(path: string): boolean {
  let text = path.toLowerCase();
  for (let pass = 0; pass < maxDecoding && text.includes("%"); pass++) {
    if (/%0[0ad]/.test(text)) return true;
    text = text.replaceAll("%2e", ".").replaceAll("%2f", "/").replaceAll("%5c", "/").replaceAll("%25", "%");
  }
  return /(?:^|\/)\.\.?(?:$|[/;])/.test(text) || text.includes("%c0%a") || text.includes("%e0%80%a");
}
