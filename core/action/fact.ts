import type { ActionPlaces } from "./action-fact.ts";
import { isJsonObject, type Json } from "./json.ts";
import { memberPointer } from "./json-pointer.ts";
import { parsedUrl } from "./parsed-url.ts";

/** Characters that are searched, in one text and in all. An action may be a thousand times as long. */
const maxOfText = 16_384;
const maxOfAll = 65_536;

/**
 * Finds hosts and paths in arguments without parsing any language: in texts and in names of members. `more` is true where
 * something was too long to be searched in full. The cost is bounded for any input.
 */
export function findPlaces(args: Json): ActionPlaces {
  let search: PlaceSearch | undefined;
  let left = maxOfAll;
  let cut = false;
  for (const text of textsIn(args)) {
    const seen = text.slice(0, Math.min(maxOfText, left));
    cut ||= seen.length < text.length;
    left -= seen.length;
    // Most texts have neither a host nor a path.
    if (seen.includes(":") || pathMark.test(seen)) {
      search ??= newPlaceSearch();
      searchHosts(search, seen);
      searchPaths(search, seen);
    }
    if (left === 0) break;
  }
  if (search === undefined) return { hosts: [], paths: [], more: cut || left === 0 };
  const { hosts } = search;
  const paths = foundPaths(search);
  const more = cut || left === 0 || hosts.more || paths.more;
  return { hosts: [...hosts.items.values()], paths: paths.items, more };
}

function* textsIn(root: Json): Iterable<string> {
  const waiting: Json[] = [root];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (typeof value === "string") yield value;
    if (typeof value !== "object" || value === null) continue;
    if (!Array.isArray(value)) yield* Object.keys(value);
    const inner: readonly Json[] = Object.values(value);
    for (let index = inner.length - 1; index >= 0; index--) waiting.push(inner[index] as Json);
  }
}

/** Facts about an action's arguments, found without parsing any language in them. */
export interface ArgumentFacts {
  /** Hosts of URLs, with the port where one is written; names as DNS knows them (`xn--…`). */
  readonly hosts: Facts<string>;
  /** Absolute and home-relative paths, and those that climb through `..`. */
  readonly paths: Facts<string>;
  /** Lists of strings that look like a program with its arguments. */
  readonly commands: Facts<readonly string[]>;
  /** The longest string, with its JSON Pointer (RFC 6901); undefined where there is none. */
  readonly maxField: { readonly pointer: string; readonly bytes: number } | undefined;
  /** The arguments as JSON without white space. */
  readonly bytes: number;
}

interface Place {
  readonly pointer: string;
  readonly name: string;
  readonly value: Json;
}

const commandNames: ReadonlySet<string> = new Set(["argv", "args", "cmd", "command"]);
const maxWords = 64;
const maxCommand = 1_024;

/**
 * Searches every string of the arguments, and the names of members. Returns at most 20 facts of a kind, and whether
 * there are more. Linear, at any depth that `JSON.stringify` can write.
 */
export function findArgumentFacts(args: Json): ArgumentFacts {
  const search = newPlaceSearch();
  const commands: FactSet<readonly string[]> = { items: new Map(), more: false };
  let maxField: ArgumentFacts["maxField"];
  for (const place of placesIn(args)) {
    const { value, pointer, name } = place;
    for (const text of typeof value === "string" ? [name, value] : [name]) {
      searchHosts(search, text);
      searchPaths(search, text);
    }
    if (isCommand(place)) addCommand(value as readonly string[], commands);
    if (typeof value !== "string") continue;
    const bytes = Buffer.byteLength(value);
    if (bytes > (maxField?.bytes ?? -1)) maxField = { pointer, bytes };
  }
  const bytes = Buffer.byteLength(JSON.stringify(args));
  return { hosts: factsOf(search.hosts), paths: foundPaths(search), commands: factsOf(commands), maxField, bytes };
}

/** Every value in a value, itself first, in order. */
function* placesIn(root: Json): Iterable<Place> {
  const waiting: Place[] = [{ pointer: "", name: "", value: root }];
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    yield place;
    for (const each of innerPlaces(place).reverse()) waiting.push(each);
  }
}

function innerPlaces({ pointer, value }: Place): Place[] {
  if (Array.isArray(value)) {
    return value.map((item: Json, index) => ({ pointer: `${pointer}/${index}`, name: "", value: item }));
  }
  if (!isJsonObject(value)) return [];
  return Object.entries(value).map(([name, member]) => ({
    pointer: memberPointer(pointer, name),
    name,
    value: member,
  }));
}

/** Texts alone, the first one word, and either named like a command or with an option behind it. */
function isCommand({ name, value }: Place): boolean {
  if (!Array.isArray(value) || !value.every((item) => typeof item === "string")) return false;
  const [program = "", ...words] = value as readonly string[];
  if (program === "" || /\s/.test(program)) return false;
  return commandNames.has(name.toLowerCase()) || words.some((word) => word.startsWith("-"));
}

function addCommand(words: readonly string[], commands: FactSet<readonly string[]>): void {
  const length = words.length > maxWords ? Number.POSITIVE_INFINITY : words.join(" ").length;
  if (length > maxCommand) commands.more = true;
  else addFact(commands, JSON.stringify(words), words);
}

/** Facts of one kind, each once. */
export interface Facts<T> {
  readonly items: readonly T[];
  /** True where there are, or may be, others that are left out. */
  readonly more: boolean;
}

const maxFacts = 20;

/** The first twenty different facts, each under a key that is equal for equal facts. */
interface FactSet<T> {
  readonly items: Map<string, T>;
  /** True where a fact is left out: beyond twenty, too long, or too expensive to find. */
  more: boolean;
}

function addFact<T>(facts: FactSet<T>, key: string, fact: T): void {
  if (facts.items.has(key)) return;
  if (facts.items.size === maxFacts) facts.more = true;
  else facts.items.set(key, fact);
}

/** Returns true once further facts would change nothing. */
function isFull({ more, items }: FactSet<unknown>): boolean {
  return more && items.size === maxFacts;
}

function factsOf<T>({ items, more }: FactSet<T>): Facts<T> {
  return { items: [...items.values()], more };
}

/** A search of texts for the hosts of URLs, and for paths that lead out of a working folder: absolute or with `..`. */
interface PlaceSearch {
  readonly hosts: FactSet<string>;
  readonly triedUrls: Set<string>;
  /** Texts that are a path as a whole. */
  readonly paths: FactSet<string>;
  /** Paths among the words of the others. */
  readonly words: FactSet<string>;
}

export function newPlaceSearch(): PlaceSearch {
  return {
    hosts: { items: new Map(), more: false },
    triedUrls: new Set(),
    paths: { items: new Map(), more: false },
    words: { items: new Map(), more: false },
  };
}

const maxHost = 255;
const maxUrl = 2_048;
const maxScheme = 32;
/** Parsing is what costs; an agent can write a million different URLs of one host. */
const maxTries = 1_000;
/** A user, host and port up to what ends them in any URL. */
const authority = /[^\s\\/?#]*/y;
/** Characters that end a host in running text, but may be part of a user name: `https://good.example;@evil.example`. */
const punctuation = /["'`<>,;|(){}=]/;

/** Looks for the host of the text as one URL, as any client would read it, and of every `scheme://host` in it. */
function searchHosts(search: PlaceSearch, text: string): void {
  // `https:host` and `ht\ntps:\\host` are URLs too.
  const colon = text.indexOf(":");
  if (colon === -1 || isFull(search.hosts)) return;
  if (colon <= maxScheme && text.length <= maxUrl) tryUrl(search, text);
  for (let mark = text.indexOf("://"); mark !== -1 && !isFull(search.hosts); mark = text.indexOf("://", mark + 3)) {
    const start = schemeStart(text, mark);
    authority.lastIndex = mark + 3;
    authority.test(text);
    if (start < mark) tryReadings(search, text.slice(start, authority.lastIndex));
  }
}

/** A client that is given the whole goes to the host behind the last `@`; other readers stop at punctuation. */
function tryReadings(search: PlaceSearch, url: string): void {
  const end = url.search(punctuation);
  if (end === -1 || url.includes("@", end)) tryUrl(search, url);
  if (end !== -1) tryUrl(search, url.slice(0, end));
}

function tryUrl({ hosts, triedUrls }: PlaceSearch, url: string): void {
  if (triedUrls.has(url)) return;
  if (url.length > maxUrl || triedUrls.size === maxTries) {
    hosts.more = true;
    return;
  }
  triedUrls.add(url);
  const host = parsedUrl(url)?.host ?? "";
  if (host.length > maxHost) hosts.more = true;
  else if (host !== "") addFact(hosts, host, host);
}

/** Returns the offset at which the scheme before `mark` begins; `mark` where there is none. */
function schemeStart(text: string, mark: number): number {
  let start = mark;
  for (let at = mark - 1; at >= 0 && mark - at <= maxScheme; at -= 1) {
    const character = text.charAt(at);
    if (/[A-Za-z]/.test(character)) start = at;
    else if (!/[0-9+.-]/.test(character)) break;
  }
  return start;
}

const maxPath = 1_024;
/** Separators of words in running text, in a command, in an assignment (`--out=/etc/x`, `-d @/etc/x`). */
const betweenWords = "\t\n\v\f\r \u00a0\"'`<>|;&(){}=,@";
/** 1 at their character codes, all below 256: a set asked for each character of a text takes more than twice as long. */
const isBetween = new Uint8Array(256);
for (const character of betweenWords) isBetween[character.charCodeAt(0)] = 1;

/** A path has one of these. */
const pathMark = /[/\\~]|\.\./;

/** Reads a text as one path, blanks included; if it is none, reads each of its words. */
export function searchPaths(search: PlaceSearch, text: string): void {
  if (!pathMark.test(text) || isFull(search.paths)) return;
  if (text.length <= maxPath && isAbsolute(text) && !/[\r\n]/.test(text)) addFact(search.paths, text, text);
  else if (!isFull(search.words)) searchWords(search, text);
}

/** Returns the paths found: texts that are a path before words that are. */
export function foundPaths({ paths, words }: PlaceSearch): Facts<string> {
  const all: FactSet<string> = { items: new Map(paths.items), more: paths.more || words.more };
  for (const path of words.items.keys()) addFact(all, path, path);
  return { items: [...all.items.values()], more: all.more };
}

function searchWords(search: PlaceSearch, text: string): void {
  let start = 0;
  for (let at = 0; at <= text.length; at += 1) {
    if (at < text.length && isBetween[text.charCodeAt(at)] !== 1) continue;
    if (at > start) addWord(search, text.slice(start, at), at - start === text.length);
    start = at + 1;
  }
}

function addWord(search: PlaceSearch, word: string, isText: boolean): void {
  const path = (/^file:/i.test(word) ? parsedUrl(word)?.pathname : undefined) ?? word;
  if (!isAbsolute(path) && !climbs(path)) return;
  const facts = isText ? search.paths : search.words;
  if (path.length > maxPath) facts.more = true;
  else addFact(facts, path, path);
}

/** Returns whether a path starts at a root, a drive, a share or a home folder. */
function isAbsolute(path: string): boolean {
  return path.startsWith("/") || path.startsWith("\\\\") || path === "~" || /^(?:~[\w.-]*|[A-Za-z]:)[\\/]/.test(path);
}

function climbs(path: string): boolean {
  return !path.includes("://") && /(?:^|[\\/])\.\.(?:[\\/]|$)/.test(path);
}
