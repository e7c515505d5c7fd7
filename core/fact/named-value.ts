import { readAddress } from "./address.ts";
import { topDomains } from "./top-domain.ts";
import { readUrl } from "./url.ts";

/**
 * Whom and what a text names, in a form in which equal places are equal texts: `net:` and a host with its path, `path:` and a
 * path, `to:` and a mail address, an account, a handle or a telephone number.
 */
export type NamedValue = string;

/** Values that one text may name; a longer list is cut. */
export const maxNamedValues = 4_096;
/** Characters of a word that are read. */
const maxWord = 2_048;

/** A text without any of these names nothing. */
const sign = /[@/\\#~%]|\.[a-z\d[]|\d[\d -]{6}|[[({]\s?dot/i;
const namesPlace = /.[@/\\.]|^[@#/\\~.].|\w{26}/;
const wordPattern = /[^\s"'`<>|;,(){}[\]]+/g;

/**
 * Adds the values that a text names to `found`. Reads what a person would: without invisible characters, with entities and
 * escapes resolved, `name [at] host [dot] example` joined. Linear; stops at `maxNamedValues`.
 */
export function findNamedValues(text: string, found: Set<NamedValue>): void {
  const plain = readable(text);
  if (!sign.test(plain)) return;
  findIn(plain, found);
  const decoded = percentDecoded(plain, maxLayers);
  if (decoded !== plain) findIn(decoded, found);
}

function findIn(text: string, found: Set<NamedValue>): void {
  const seen = new Set<string>();
  for (const { 0: word, index } of text.matchAll(wordPattern)) {
    if (found.size >= maxNamedValues) return;
    if (word.length > maxWord) addUrls(word.slice(0, maxWord), found);
    else if (namesPlace.test(word) && !seen.has(word)) {
      seen.add(word);
      addWord(word, text.slice(Math.max(0, index - 8), index), found);
    }
  }
  for (const [, address = ""] of text.matchAll(/:\/\/(\[[\da-f:.]{2,45}\])/gi)) addHost(address, "", found);
  addNumbers(text, found);
}

const ascii = /^[\t\n\r -~]*$/;
const invisible = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;
const entities: Readonly<Record<string, string>> = {
  commat: "@",
  period: ".",
  sol: "/",
  colon: ":",
  amp: "&",
  num: "#",
};

/** Returns the text as it is read: its disguises taken off. */
function readable(text: string): string {
  let plain = ascii.test(text) ? text : text.normalize("NFKC").replace(invisible, "");
  if (plain.includes("&")) plain = plain.replace(/&(#x[\da-f]{1,6}|#\d{1,7}|[a-z]{2,8});/gi, decodeEntity);
  if (plain.includes("\\")) {
    plain = plain
      .replace(/\\u00([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
      .replaceAll("\\/", "/");
    // A folder of Windows may be called `new`.
    if (!/[a-z]:\\|\\\\/i.test(plain)) plain = plain.replace(/\\[nrt]/g, " ");
  }
  if (/[[({]/.test(plain)) {
    plain = plain
      .replace(/\s?[[({]\s?(?:at|@)\s?[\])}]\s?/gi, "@")
      .replace(/\s?[[({]\s?(?:dot|\.)\s?[\])}]\s?/gi, ".")
      .replace(/[[({]:[\])}]/g, ":");
  }
  return plain.replace(/\bhxxp/gi, "http");
}

function decodeEntity(written: string, name: string): string {
  if (!name.startsWith("#")) return entities[name.toLowerCase()] ?? written;
  const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : written;
}

/** Escapes of escapes that are resolved. */
const maxLayers = 3;

/** Resolves the percent escapes of ASCII, at most `layers` times. */
export function percentDecoded(text: string, layers: number): string {
  let plain = text;
  for (let layer = 0; layer < layers && plain.includes("%"); layer++) {
    plain = plain.replace(/%([2-7][\da-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return plain;
}

/** `before`: what stands before the word; the link of a page is no path of the machine. */
function addWord(written: string, before: string, found: Set<NamedValue>): void {
  const word = written.slice(written.search(/[^*_:]/), lengthWithoutMarks(written));
  if (word.includes("://")) addUrls(word, found);
  else addPlainWord(word, before, found);
}

function addPlainWord(word: string, before: string, found: Set<NamedValue>): void {
  const value = word.replace(/^[\w-]*=/, "");
  const at = value.search(/@[\p{L}\p{N}]/u);
  if (at > 0) addMail(value, found);
  if (/^[@#][a-z][\w.-]+$/i.test(value)) found.add(`to:${value.slice(1).toLowerCase()}`);
  else if (value.length >= 26 && /^(?:0x|bc1|[13])\w+$/i.test(value)) addAddress(value, found);
  const place = value.replace(/^@/, "");
  const isLink = /(?:href|src|action)=["']?$|\]\($/i.test(before);
  if (!isLink && /^(?:[/~\\.]|[a-z]:[/\\])/i.test(place)) addPath(place, found);
  else if (at < 1) addPlace(value, found);
}

/** Returns the length of a word without the marks of a sentence or of Markdown at its end. */
function lengthWithoutMarks(word: string): number {
  let length = word.length;
  while (length > 0 && "*_.:!?".includes(word.charAt(length - 1))) length--;
  return length;
}

const authority = /^[^\s\\/?#]+/;

function addUrls(word: string, found: Set<NamedValue>): void {
  const marks = [...word.matchAll(/([a-z][a-z0-9+.-]{0,31}):\/\//gi)];
  for (const [index, { 0: begin, 1: scheme = "", index: at }] of marks.entries()) {
    const rest = word.slice(at + begin.length, marks[index + 1]?.index ?? word.length);
    const host = authority.exec(rest)?.[0] ?? "";
    if (/^file$/i.test(scheme)) addPath(rest.replace(/^localhost/i, ""), found);
    else addHost(host, rest.slice(host.length), found);
  }
}

/** `rest`: the path and what follows it. Hosts and places on a host are values of their own. */
function addHost(written: string, rest: string, found: Set<NamedValue>): void {
  const host = written === "" ? "" : readUrl(`http://${written}`).host;
  if (host === "" || host.length > 255) return;
  found.add(`net:${host}`);
  const path = plainSegments(rest.split(/[?#]/, 1)[0] ?? "").replace(/\.git$/, "");
  if (path !== "") found.add(`net:${host}/${path}`);
}

function addMail(word: string, found: Set<NamedValue>): void {
  const address = word.replace(/^mailto:/i, "").split("?", 1)[0] ?? "";
  const at = address.indexOf("@");
  const remote = /^[\w.-]+@([\w.-]+):(?!\d+$)(.+)$/.exec(address);
  if (remote !== null) addHost(remote[1] ?? "", `/${remote[2]}`, found);
  // `to:ada@acme.example` and `user:ada@acme.example`
  else addAddress(address.slice(address.lastIndexOf(":", at) + 1), found);
}

function addAddress(text: string, found: Set<NamedValue>): void {
  const { kind, plain } = readAddress(text);
  if (kind !== "other" && plain.length <= 320) found.add(`to:${plain.replace(/^(?:\+|00|@)/, "")}`);
}

const dotted = /^[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)+\.?$/u;

/** Adds a host that is written without a scheme, and a path of a hidden file that is written without its folder. */
function addPlace(value: string, found: Set<NamedValue>): void {
  const slash = value.indexOf("/");
  const name = (slash === -1 ? value : value.slice(0, slash)).replace(/:\d{0,5}$/, "");
  const last = name
    .slice(name.lastIndexOf(".", name.length - 2) + 1)
    .replace(/\.$/, "")
    .toLowerCase();
  const isTop = topDomains.has(last) || /^xn--|[^ -~]/.test(last) || (slash !== -1 && /^[a-z]{2,24}$/.test(last));
  const isHost = dotted.test(name) && (isTop || /^\d+(?:\.\d+){3}$/.test(name));
  if (isHost) addHost(name, slash === -1 ? "" : value.slice(slash), found);
  else if (slash !== -1 && /\/\.[a-z]/i.test(value)) addPath(value, found);
  // `host:/path` and `files:/path`
  if (/^[\w.-]+:[/~]/.test(value)) addPath(value.slice(value.indexOf(":") + 1), found);
}

const rootFolders =
  /^(?:bin|boot|data|dev|etc|home|lib|media|mnt|opt|private|proc|root|run|srv|sys|tmp|users|usr|var|workspace)$/;

/** Adds a path that leads out of the working folder, and a hidden file also without the folder it is in. */
function addPath(written: string, found: Set<NamedValue>): void {
  if (written.length > 1_024) return;
  const slashed = written.replaceAll("\\", "/").toLowerCase();
  const segments = plainSegments(slashed);
  const hidden = hiddenPart(segments);
  if (hidden !== "") found.add(`path:${hidden}`);
  const isWhole = segments.includes("/") || rootFolders.test(segments);
  if (/^\/|^[a-z]:\//.test(slashed) && isWhole) found.add(`path:/${homeless(segments)}`);
  else if (/^~|^\.\.\//.test(slashed) && segments !== "") found.add(`path:/${segments}`);
}

/** Returns what follows from the first hidden folder or file; empty where there is none. */
function hiddenPart(segments: string): string {
  const at = `/${segments}`.search(/\/\.[a-z]/);
  return at === -1 ? "" : segments.slice(at);
}

/** Home folders are `~`, whoever's they are. */
function homeless(segments: string): string {
  return segments.replace(/^(?:home\/[^/]+|users\/[^/]+|root)(?=\/)/, "~");
}

function plainSegments(path: string): string {
  const segments: string[] = [];
  for (const segment of path.toLowerCase().split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  return segments.join("/");
}

const iban = /\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?\b|\b[a-z]{2}\d{10,32}\b/g;
const digits = /\+?\d(?:[ ()/-]{0,2}\d){7,33}/g;
const date = /^\d{4}-\d\d-\d\d/;

function addNumbers(text: string, found: Set<NamedValue>): void {
  if (!/\d[ -]?\d/.test(text)) return;
  for (const [account] of text.matchAll(iban)) {
    addAccount(account, found);
    // The word behind an account is none of it.
    addAccount(account.slice(0, Math.max(account.lastIndexOf(" "), 0)), found);
    if (found.size >= maxNamedValues) return;
  }
  for (const { 0: number, index } of text.matchAll(digits)) {
    if (found.size >= maxNamedValues) return;
    const isPart = /[\w.]/.test(text.charAt(index - 1)) || /^(?:\w|\.\d)/.test(text.slice(index + number.length));
    if (!isPart && !date.test(number)) found.add(`to:${number.replace(/\D/g, "").replace(/^00/, "")}`);
  }
}

function addAccount(written: string, found: Set<NamedValue>): void {
  const account = written.replace(/[ -]/g, "").toUpperCase();
  if (account.length >= 12) found.add(`to:${account}`);
}

/** Returns the value, then those that it is part of: a place on a host, the host, the domains above it; a file, its folders. */
export function widerValues(value: NamedValue): readonly NamedValue[] {
  if (value.startsWith("net:")) return widerPlaces(value.slice("net:".length));
  if (value.startsWith("path:")) return widerPaths(value.slice("path:".length));
  const domain = /^to:[^@]+@(.+)$/.exec(value)?.[1];
  return domain === undefined ? [value] : [value, ...widerPlaces(domain)];
}

const maxWider = 12;

function widerPlaces(place: string): readonly NamedValue[] {
  const [host = "", ...segments] = place.split("/");
  const paths = segments.map((_, at) => `net:${[host, ...segments.slice(0, segments.length - at)].join("/")}`);
  const labels = /^[\d.]+$|:/.test(host) ? [host] : host.split(".");
  const hosts =
    labels.length === 1 ? [`net:${host}`] : labels.slice(1).map((_, at) => `net:${labels.slice(at).join(".")}`);
  return [...paths.slice(0, maxWider), ...hosts.slice(0, maxWider)];
}

function widerPaths(path: string): readonly NamedValue[] {
  if (!path.startsWith("/")) return [`path:${path}`];
  const hidden = hiddenPart(path.slice(1));
  const segments = path.slice(1).split("/");
  const folders = segments.slice(2).map((_, at) => `path:/${segments.slice(0, segments.length - 1 - at).join("/")}`);
  return [`path:${path}`, ...(hidden === "" ? [] : [`path:${hidden}`]), ...folders.slice(0, maxWider)];
}
