import type { Json, JsonObject } from "../../action/json.ts";

/** A value of a JSON text and where it stands: offsets in UTF-16 code units. */
export type JsoncNode = JsoncObject | JsoncList | JsoncScalar;

interface JsoncPlace {
  readonly start: number;
  /** Behind its last character. */
  readonly end: number;
}

export interface JsoncObject extends JsoncPlace {
  readonly kind: "object";
  readonly members: readonly JsoncMember[];
}

interface JsoncList extends JsoncPlace {
  readonly kind: "list";
  readonly items: readonly JsoncNode[];
}

interface JsoncScalar extends JsoncPlace {
  readonly kind: "scalar";
  readonly value: string | number | boolean | null;
}

/** `"name": value`, from the first quotation mark to the end of the value. */
export interface JsoncMember extends JsoncPlace {
  readonly name: string;
  readonly value: JsoncNode;
}

const maxDepth = 64;
const maxNodes = 1_000_000;

/**
 * Parses JSON with comments and trailing commas, as editors write it. A name that stands twice in one object is refused: clients
 * disagree about which counts. Throws SyntaxError with the line and column; it quotes nothing of the text, which may hold secrets.
 */
export function parseJsonc(text: string): JsoncNode {
  return new JsoncReader(text).read();
}

class JsoncReader {
  readonly #text: string;
  #at: number;
  #nodes = 0;

  constructor(text: string) {
    this.#text = text;
    this.#at = text.startsWith("\ufeff") ? 1 : 0;
  }

  read(): JsoncNode {
    const node = this.#value(0);
    this.#skip();
    if (this.#at < this.#text.length) this.#refuse("the end of the file");
    return node;
  }

  #value(depth: number): JsoncNode {
    this.#skip();
    if (depth > maxDepth) this.#refuse(`at most ${maxDepth} levels`);
    if (++this.#nodes > maxNodes) this.#refuse(`at most ${maxNodes} values`);
    const first = this.#text[this.#at];
    if (first === "{") return this.#object(depth);
    if (first === "[") return this.#list(depth);
    const start = this.#at;
    if (first === '"') return { kind: "scalar", value: this.#string(), start, end: this.#at };
    const [word] = /^[-+.\w]{1,400}/.exec(this.#text.slice(start, start + 400)) ?? [""];
    this.#at += word.length;
    return { kind: "scalar", value: this.#literal(word, start), start, end: this.#at };
  }

  #object(depth: number): JsoncObject {
    const start = this.#at++;
    const members: JsoncMember[] = [];
    const names = new Set<string>();
    while (!this.#closes("}", members.length)) {
      const at = this.#at;
      if (this.#text[at] !== '"') this.#refuse("a name in quotation marks");
      const name = this.#string();
      if (names.has(name)) this.#refuse("each name once", at);
      names.add(name);
      this.#skip();
      if (this.#text[this.#at++] !== ":") this.#refuse("a colon", this.#at - 1);
      const value = this.#value(depth + 1);
      members.push({ name, value, start: at, end: value.end });
    }
    return { kind: "object", members, start, end: this.#at };
  }

  #list(depth: number): JsoncList {
    const start = this.#at++;
    const items: JsoncNode[] = [];
    while (!this.#closes("]", items.length)) items.push(this.#value(depth + 1));
    return { kind: "list", items, start, end: this.#at };
  }

  /** Reads the end of a list or object, or the comma before its next part, behind which the end may follow as well. */
  #closes(bracket: "}" | "]", count: number): boolean {
    this.#skip();
    if (count > 0 && this.#text[this.#at] === ",") {
      this.#at++;
      this.#skip();
    } else if (count > 0 && this.#text[this.#at] !== bracket) this.#refuse(`a comma or \`${bracket}\``);
    if (this.#text[this.#at] !== bracket) return false;
    this.#at++;
    return true;
  }

  #string(): string {
    const start = this.#at++;
    for (;;) {
      const character = this.#text[this.#at++];
      if (character === undefined || character === "\n") this.#refuse("the end of a string", start);
      if (character === "\\") this.#at++;
      if (character === '"') break;
    }
    try {
      return JSON.parse(this.#text.slice(start, this.#at)) as string;
    } catch {
      return this.#refuse("a string as JSON writes it", start);
    }
  }

  #literal(word: string, start: number): number | boolean | null {
    try {
      const value = JSON.parse(word) as number | boolean | null;
      if (typeof value !== "object" || value === null) return value;
    } catch {
      // refused below
    }
    return this.#refuse("a value", start);
  }

  #skip(): void {
    this.#at = skipTrivia(this.#text, this.#at);
  }

  #refuse(expected: string, at: number = this.#at): never {
    const before = this.#text.slice(0, at);
    const line = before.split("\n").length;
    throw new SyntaxError(`${line}:${at - before.lastIndexOf("\n")}: expected ${expected}`);
  }
}

/** Returns the offset of the first character at or behind `at` that is neither white space nor part of a comment. */
export function skipTrivia(text: string, at: number): number {
  for (let next = at; ; ) {
    const character = text[next];
    if (character !== undefined && " \t\r\n".includes(character)) next++;
    else if (text.startsWith("//", next)) next = endOr(text, text.indexOf("\n", next));
    else if (text.startsWith("/*", next)) next = endOr(text, text.indexOf("*/", next + 2), 2);
    else return next;
  }
}

function endOr(text: string, found: number, length: number = 0): number {
  return found === -1 ? text.length : found + length;
}

/** The value of a node; `__proto__` is a plain member. */
export function jsonOf(node: JsoncNode): Json {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "list") return node.items.map(jsonOf);
  return Object.fromEntries(node.members.map(({ name, value }) => [name, jsonOf(value)]));
}

/** A part of a text that is replaced. */
interface TextEdit extends JsoncPlace {
  readonly text: string;
}

/**
 * Returns the text with the first of some members of an object replaced by another one, in its place and indented as it was, and
 * the others of them removed with their commas. Every other character stays, comments included.
 */
export function replaceMembers(
  text: string,
  object: JsoncObject,
  names: ReadonlySet<string>,
  name: string,
  value: JsonObject,
): string {
  const { members } = object;
  const [first, ...others] = members.filter((member) => names.has(member.name));
  if (first === undefined) throw new TypeError("replaceMembers: expected a member to replace");
  const rendered = `${JSON.stringify(name)}: ${renderValue(text, object, first, value)}`;
  const edits: TextEdit[] = [{ start: first.start, end: first.end, text: rendered }];
  for (const member of others) edits.push(...removal(text, member));
  const kept = members.findLast((member) => member === first || !names.has(member.name));
  const last = members.at(-1);
  if (kept !== undefined && last !== kept && last !== undefined && commaBehind(text, last.end) === undefined) {
    const comma = commaBehind(text, kept.end);
    if (comma !== undefined) edits.push({ start: comma, end: comma + 1, text: "" });
  }
  return applyEdits(text, edits);
}

function applyEdits(text: string, edits: readonly TextEdit[]): string {
  let edited = text;
  for (const { start, end, text: by } of edits.toSorted((a, b) => b.start - a.start)) {
    edited = `${edited.slice(0, start)}${by}${edited.slice(end)}`;
  }
  return edited;
}

function commaBehind(text: string, at: number): number | undefined {
  const next = skipTrivia(text, at);
  return text[next] === "," ? next : undefined;
}

/** Removes a member and the comma behind it; with its lines where nothing else stands in them. */
function removal(text: string, { start, end }: JsoncMember): readonly TextEdit[] {
  const comma = commaBehind(text, end);
  const isNext = comma !== undefined && text.slice(end, comma).trim() === "";
  const stop = isNext ? comma + 1 : end;
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  const lineEnd = text.indexOf("\n", stop);
  const isAlone =
    text.slice(lineStart, start).trim() === "" && lineEnd !== -1 && text.slice(stop, lineEnd).trim() === "";
  const whole: TextEdit = isAlone ? { start: lineStart, end: lineEnd + 1, text: "" } : { start, end: stop, text: "" };
  return comma === undefined || isNext ? [whole] : [whole, { start: comma, end: comma + 1, text: "" }];
}

/** Renders the value of a member as the object around it is written: on one line, or indented as its lines are. */
function renderValue(text: string, object: JsoncObject, member: JsoncMember, value: JsonObject): string {
  const indent = indentAt(text, member.start);
  if (indent === undefined) return JSON.stringify(value);
  const outer = indentAt(text, object.end - 1) ?? "";
  const unit = indent.startsWith(outer) ? indent.slice(outer.length) : "";
  const eol = text[text.lastIndexOf("\n", member.start - 1) - 1] === "\r" ? "\r\n" : "\n";
  return JSON.stringify(value, null, unit === "" ? "  " : unit.slice(0, 8)).replaceAll("\n", `${eol}${indent}`);
}

/** Returns the white space before the first character of a line; undefined where something else stands before it. */
function indentAt(text: string, at: number): string | undefined {
  const lineStart = text.lastIndexOf("\n", at - 1) + 1;
  const before = text.slice(lineStart, at);
  return lineStart === 0 || before.trim() !== "" ? undefined : before;
}
