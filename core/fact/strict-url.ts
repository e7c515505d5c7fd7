import { hasUnseen, misleads } from "./name-sign.ts";

/** A URL as RFC 3986 splits it, read letter by letter and repairing nothing: the second opinion on `URL`. */
export interface StrictUrl {
  /** In lower case. */
  readonly scheme: string;
  readonly userinfo: string | null;
  /** In lower case, an IPv6 address without its brackets; null where there is no `//`. */
  readonly host: string | null;
  readonly isIpv6: boolean;
  /** Null where none is written. */
  readonly port: number | null;
  readonly path: string;
  /** The query and the fragment, with what begins them. */
  readonly rest: string;
}

/** Reads a text as a URL; undefined where RFC 3986 knows none in it, letters beyond ASCII aside. */
export function readStrictUrl(text: string): StrictUrl | undefined {
  if (hasUnseen(text) || text.includes(" ") || text.includes("\\")) return undefined;
  const colon = schemeEnd(text);
  if (colon === 0) return undefined;
  const scheme = text.slice(0, colon).toLowerCase();
  const hasAuthority = text.startsWith("//", colon + 1);
  const start = hasAuthority ? colon + 3 : colon + 1;
  const end = hasAuthority ? firstOf(text, "/?#", start) : start;
  const query = firstOf(text, "?#", end);
  const tail = { path: text.slice(end, query), rest: text.slice(query) };
  if (!hasAuthority) return { scheme, userinfo: null, host: null, isIpv6: false, port: null, ...tail };
  const authority = readAuthority(text.slice(start, end));
  return authority && { scheme, ...authority, ...tail };
}

const maxScheme = 32;

/** Returns the offset of the colon behind the scheme; 0 where there is no scheme. */
function schemeEnd(text: string): number {
  for (let at = 0; at < Math.min(text.length, maxScheme + 1); at++) {
    if (text[at] === ":") return at;
    if (!(isLetter(text, at) || (at > 0 && (isDigit(text, at) || "+-.".includes(text.charAt(at)))))) return 0;
  }
  return 0;
}

function firstOf(text: string, marks: string, start: number): number {
  for (let at = start; at < text.length; at++) if (marks.includes(text.charAt(at))) return at;
  return text.length;
}

type Authority = Pick<StrictUrl, "userinfo" | "host" | "isIpv6" | "port">;

function readAuthority(text: string): Authority | undefined {
  const at = text.indexOf("@");
  const userinfo = at === -1 ? null : text.slice(0, at);
  const place = text.slice(at + 1);
  if (place.includes("@") || (userinfo !== null && !consistsOf(userinfo, isUserinfo))) return undefined;
  const isIpv6 = place.startsWith("[");
  const hostEnd = isIpv6 ? place.indexOf("]") + 1 : firstOf(place, ":", 0);
  if (isIpv6 && hostEnd === 0) return undefined;
  const port = readPort(place.slice(hostEnd));
  const host = isIpv6 ? place.slice(1, hostEnd - 1) : place.slice(0, hostEnd);
  const isHost = isIpv6 ? consistsOf(host.toLowerCase(), isIpv6Part) : isPlainName(host);
  return port === undefined || !isHost ? undefined : { userinfo, host: host.toLowerCase(), isIpv6, port };
}

/** Reads `:8080`; null for no port, undefined for one that readers repair or refuse. */
function readPort(text: string): number | null | undefined {
  if (text === "") return null;
  const digits = text.slice(1);
  const isNumber = text.startsWith(":") && digits.length <= 5 && consistsOf(digits, isDigit) && !digits.startsWith("0");
  return isNumber && digits !== "" && Number(digits) <= 65_535 ? Number(digits) : undefined;
}

type Kind = (text: string, at: number) => boolean;

function consistsOf(text: string, kind: Kind): boolean {
  for (let at = 0; at < text.length; at++) if (!kind(text, at)) return false;
  return true;
}

const isLetter: Kind = (text, at) => isBetween(text, at, 0x61, 0x7a) || isBetween(text, at, 0x41, 0x5a);
const isDigit: Kind = (text, at) => isBetween(text, at, 0x30, 0x39);
const isIpv6Part: Kind = (text, at) =>
  isDigit(text, at) || isBetween(text, at, 0x61, 0x66) || ":.".includes(text.charAt(at));
const isUserinfo: Kind = (text, at) =>
  isLetter(text, at) || isDigit(text, at) || "-_~!$&'()*+,;=:.%".includes(text.charAt(at));

function isBetween(text: string, at: number, first: number, last: number): boolean {
  const code = text.charCodeAt(at);
  return code >= first && code <= last;
}

/** Letters, digits, hyphens and dots, as every edition of IDNA reads them. */
function isPlainName(host: string): boolean {
  if (consistsOf(host, (text, at) => isLetter(text, at) || isDigit(text, at) || "-._".includes(text.charAt(at))))
    return true;
  // IDNA 2003 and 2008 do not agree about these, nor about what changes under NFKC.
  if (/[ßςϲ]/.test(host) || host.normalize("NFKC") !== host) return false;
  return /^[\p{L}\p{M}\-._0-9]+$/u.test(host) && !host.split(".").some(misleads);
}
