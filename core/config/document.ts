import { isUtf8 } from "node:buffer";
import { readFile, stat } from "node:fs/promises";
import {
  Composer,
  type CST,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type ParsedNode,
  Parser,
  type Scalar,
  type YAMLMap,
} from "yaml";
import type { Json } from "../action/json.ts";
import { type FaultList, type Place, quoteInput } from "./fault.ts";

/**
 * A value of a YAML document with its position: plain data, without tags, anchors, aliases, merge keys and duplicate
 * keys, so that no two readers of the file can disagree about it.
 */
export type YamlNode = YamlMap | YamlList | YamlScalar;

export interface YamlScalar {
  readonly kind: "scalar";
  readonly value: string | number | boolean | null;
  readonly place: Place;
  /** Set where a fault about the value is already reported. */
  readonly isFault?: true;
  /** The place of the character at `offset` of the value: exact in one-line scalars and literal blocks, else the start. */
  placeAt(offset: number): Place;
}

export interface YamlList {
  readonly kind: "list";
  readonly items: readonly YamlNode[];
  readonly place: Place;
}

export interface YamlMap {
  readonly kind: "map";
  readonly members: ReadonlyMap<string, YamlMember>;
  readonly place: Place;
}

export interface YamlMember {
  readonly keyPlace: Place;
  readonly value: YamlNode;
}

/**
 * Reads exactly one YAML 1.2 document within fixed bounds, and adds a fault for everything that is not plain data.
 * Returns undefined where there is no document to check, always with a fault. Faults never quote a value: it may be a
 * secret.
 */
export function parseDocument(file: string, text: string, faults: FaultList): YamlNode | undefined {
  const before = faults.count;
  const placeOf = placeFinder(file, text);
  const tokens = parseTokens(text, placeOf, faults);
  const root = tokens === null ? null : composeTokens(tokens, text.length, placeOf, faults);
  if (root !== null) return new NodeBuilder(text, placeOf, faults).build(root);
  if (faults.count === before) faults.addAt({ file, line: 1, column: 1 }, "expected a mapping, got nothing");
  return undefined;
}

/** Reads a file as `readTextFile` does and parses it as `parseDocument` does. */
export async function readDocument(path: string, faults: FaultList): Promise<YamlNode | undefined> {
  const text = await readTextFile(path, faults);
  return text === null ? undefined : parseDocument(path, text, faults);
}

/** The node as a JSON value; `__proto__` and its like are plain members. */
export function plainValue(node: YamlNode): Json {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "list") return node.items.map(plainValue);
  return Object.fromEntries(Array.from(node.members, ([key, { value }]) => [key, plainValue(value)]));
}

type PlaceFinder = (offset: number) => Place;

function placeFinder(file: string, text: string): PlaceFinder {
  const lines = new LineCounter();
  lines.addNewLine(0);
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines.addNewLine(at + 1);
  return (offset) => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col };
  };
}

/** Collections inside one another. The composer recurses once a level; a stack overflow inside it can end the process. */
const maxDepth = 32;
/** Lexical tokens; about 30,000 keys. Bounds the time a hostile file may take. */
const maxTokens = 250_000;

/** The concrete tokens of the first document, or null where a bound was exceeded. */
function parseTokens(text: string, placeOf: PlaceFinder, faults: FaultList): CST.Token[] | null {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    const isTooDeep =
      parser.stack.length > maxDepth && parser.stack.filter((open) => "items" in open).length > maxDepth;
    if (!isTooDeep && ++count <= maxTokens) continue;
    const bound = isTooDeep ? `${maxDepth} levels` : `${maxTokens} tokens`;
    faults.addAt(placeOf(parser.offset), `expected at most ${bound}, got more`);
    return null;
  }
  tokens.push(...parser.end());
  return firstDocument(tokens, placeOf, faults);
}

function firstDocument(tokens: CST.Token[], placeOf: PlaceFinder, faults: FaultList): CST.Token[] {
  const directive = tokens.find(({ type }) => type === "directive");
  if (directive !== undefined) {
    // `%YAML 1.1` would turn `no` and `on` into booleans.
    faults.addAt(placeOf(directive.offset), "expected no directives, got one");
  }
  const second = tokens.filter(({ type }) => type === "document")[1];
  const first = second === undefined ? tokens : tokens.slice(0, tokens.indexOf(second));
  if (second !== undefined) faults.addAt(placeOf(second.offset), "expected one document, got a second");
  return first.filter(({ type }) => type !== "directive");
}

function composeTokens(
  tokens: CST.Token[],
  length: number,
  placeOf: PlaceFinder,
  faults: FaultList,
): ParsedNode | null {
  // NodeBuilder looks for duplicate keys in linear time: the composer compares every pair of keys.
  const composer = new Composer({ strict: true, stringKeys: true, uniqueKeys: false, resolveKnownTags: false });
  const [document] = composer.compose(tokens, true, length);
  if (document === undefined) throw new TypeError("composeTokens: expected the composer to yield a document");
  const complaints = [...document.errors, ...document.warnings];
  for (const { code, pos } of complaints) faults.addAt(placeOf(pos[0]), syntaxText[code]);
  return complaints.length === 0 ? document.contents : null;
}

/** Turns the composer's nodes into plain data. Their depth is bounded by `parseTokens`. */
class NodeBuilder {
  readonly #text: string;
  readonly #placeOf: PlaceFinder;
  readonly #faults: FaultList;

  constructor(text: string, placeOf: PlaceFinder, faults: FaultList) {
    this.#text = text;
    this.#placeOf = placeOf;
    this.#faults = faults;
  }

  build(node: ParsedNode): YamlNode {
    const place = this.#placeOf(node.range[0]);
    this.#refuseIndirection(node, place);
    if (isAlias(node)) return { ...nothingAt(place), isFault: true };
    if (isMap<ParsedNode, ParsedNode | null>(node)) return { kind: "map", members: this.#members(node), place };
    if (isSeq<ParsedNode>(node)) return { kind: "list", items: node.items.map((item) => this.build(item)), place };
    return isScalar(node) ? this.#scalar(node, place) : nothingAt(place);
  }

  #members(map: YAMLMap<ParsedNode, ParsedNode | null>): ReadonlyMap<string, YamlMember> {
    const members = new Map<string, YamlMember>();
    for (const pair of map.items) {
      const keyPlace = this.#placeOf(pair.key.range[0]);
      this.#refuseIndirection(pair.key, keyPlace);
      const key = isScalar(pair.key) ? String(pair.key.value) : "";
      const value = pair.value === null ? nothingAt(keyPlace) : this.build(pair.value);
      if (key === "<<") this.#faults.addAt(keyPlace, "expected plain keys, got the merge key `<<`");
      else if (members.has(key)) this.#faults.addAt(keyPlace, `expected each key once, got ${quoteInput(key)} again`);
      else members.set(key, { keyPlace, value });
    }
    return members;
  }

  /** A file must mean what it shows, read from top to bottom. */
  #refuseIndirection(node: ParsedNode, place: Place): void {
    if (isAlias(node)) this.#faults.addAt(place, "expected a plain value, got an alias");
    else if (node.anchor !== undefined) this.#faults.addAt(place, "expected a plain value, got an anchor");
    // The composer names a tag only where the file does.
    if (node.tag !== undefined) {
      this.#faults.addAt(place, `expected a plain value, got the tag ${quoteInput(node.tag)}`);
    }
  }

  #scalar(node: Scalar.Parsed, place: Place): YamlScalar {
    const value = node.value as YamlScalar["value"];
    const placeAt = (offset: number): Place => this.#placeOf(this.#offsetIn(node, offset));
    const inexact = describeInexact(value);
    if (inexact === undefined) return { kind: "scalar", value, place, placeAt };
    this.#faults.addAt(place, inexact);
    return { kind: "scalar", value, place, placeAt, isFault: true };
  }

  #offsetIn(node: Scalar.Parsed, offset: number): number {
    const [start, end] = node.range;
    if (node.type === "BLOCK_LITERAL") return blockOffset(this.#text, start, node.value as string, offset);
    if (this.#text.slice(start, end).includes("\n")) return start;
    return start + (node.type === "PLAIN" ? 0 : 1) + offset;
  }
}

function nothingAt(place: Place): YamlScalar {
  return { kind: "scalar", value: null, place, placeAt: () => place };
}

/** The fault of a value that JSON cannot carry unchanged. */
function describeInexact(value: YamlScalar["value"]): string | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : "expected text, got a lone surrogate";
  if (typeof value !== "number" || Number.isSafeInteger(value)) return undefined;
  if (Number.isFinite(value) && !Number.isInteger(value)) return undefined;
  return "expected a number that a double holds exactly, got one that it does not";
}

/** The offset in the file of the character at `offset` of a literal block, whose header is at `start`. */
function blockOffset(text: string, start: number, value: string, offset: number): number {
  const before = value.slice(0, offset).split("\n");
  let line = text.indexOf("\n", start) + 1;
  const indent = (text.slice(line).match(/^ */) as RegExpMatchArray)[0].length;
  for (let skipped = 1; skipped < before.length; skipped++) line = text.indexOf("\n", line) + 1;
  return line + indent + (before.at(-1) as string).length;
}

/** Texts for the parser's error codes: its own messages may quote a piece of the file, and with it a secret. */
const syntaxText: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: "expected a plain value, got an alias with a tag or an anchor",
  BAD_ALIAS: "expected a plain value, got an alias",
  BAD_COLLECTION_TYPE: "expected a plain value, got a tag that does not fit",
  BAD_DIRECTIVE: "expected no directives, got one",
  BAD_DQ_ESCAPE: "expected a known escape in the double-quoted string",
  BAD_INDENT: "expected the indentation of the lines around it, or before it the `]` or `}` that closes what is open",
  BAD_PROP_ORDER: "expected a plain value, got tags or anchors",
  BAD_SCALAR_START: "expected a quoted string: a plain one cannot start with this character",
  BLOCK_AS_IMPLICIT_KEY: "expected one `key: value` on a line, got another inside it",
  BLOCK_IN_FLOW: "expected only `[…]` and `{…}` inside `[…]` and `{…}`",
  DUPLICATE_KEY: "expected each key once",
  IMPOSSIBLE: "expected YAML",
  KEY_OVER_1024_CHARS: "expected a key of at most 1024 characters",
  MISSING_CHAR: "expected a closing quote, a closing bracket, a comma, a colon, a space or another indentation here",
  MULTILINE_IMPLICIT_KEY: "expected a key on one line",
  MULTIPLE_ANCHORS: "expected a plain value, got anchors",
  MULTIPLE_DOCS: "expected one document, got a second",
  MULTIPLE_TAGS: "expected a plain value, got tags",
  NON_STRING_KEY: "expected a plain string as key",
  RESOURCE_EXHAUSTION: "expected less nesting",
  TAB_AS_INDENT: "expected spaces as indentation, got a tab",
  TAG_RESOLVE_FAILED: "expected a plain value, got a tag",
  UNEXPECTED_TOKEN: "expected a key, a value or an end of line here",
};

const maxBytes = 1_048_576;

/**
 * Reads a regular file of at most 1 MiB of UTF-8 without byte order mark and NUL. Anything else is a fault, and the
 * result null.
 */
export async function readTextFile(path: string, faults: FaultList): Promise<string | null> {
  const refuse = (expectedAndGot: string): null => {
    faults.add("", `expected ${expectedAndGot}`);
    return null;
  };
  let bytes: Buffer;
  try {
    const found = await stat(path);
    // Reading a pipe or a device could block the start for ever.
    if (!found.isFile()) return refuse(`a file, got ${found.isDirectory() ? "a directory" : "a special file"}`);
    if (found.size > maxBytes) return refuse(`at most ${maxBytes} bytes, got ${found.size}`);
    bytes = await readFile(path);
  } catch (error) {
    return refuse(`a readable file, got ${describeFileError(error)}`);
  }
  if (!isUtf8(bytes)) return refuse("UTF-8, got invalid bytes");
  const text = bytes.toString("utf8");
  if (text.startsWith("\ufeff")) return refuse("no byte order mark, got one");
  return text.includes("\0") ? refuse("text, got a NUL character") : text;
}

const fileErrors: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  ENOTDIR: "no such file",
  EEXIST: "a name that is taken",
  EISDIR: "a directory",
  EROFS: "a disk that is read-only",
  ENOSPC: "a disk that is full",
  EACCES: "permission denied",
  EPERM: "permission denied",
  ELOOP: "a loop of symbolic links",
  ENAMETOOLONG: "a name too long",
};

/** Throws what is no error of the file system. */
export function describeFileError(error: unknown): string {
  if (!(error instanceof Error && "code" in error)) throw error;
  return fileErrors[String(error.code)] ?? `error ${String(error.code)}`;
}
