import { parse } from "smol-toml";
import type { JsonObject } from "../../action/json.ts";

const maxDepth = 64;

/** The table that a header opens: `[a."b c".d]`. */
interface TomlHeader {
  readonly path: readonly string[];
  /** The offset of its line. */
  readonly start: number;
}

/**
 * Parses TOML. Throws SyntaxError with the line and column alone: the parser's own message quotes the text, which may hold
 * secrets.
 */
export function parseToml(text: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text.replace(/^\ufeff/, ""), { integersAsBigInt: "asNeeded", maxDepth });
  } catch (cause) {
    const { line, column } = cause as { readonly line?: unknown; readonly column?: unknown };
    const place = typeof line === "number" && typeof column === "number" ? `${line}:${column}: ` : "";
    throw new SyntaxError(`${place}expected TOML`, { cause });
  }
}

/**
 * Returns the text with the tables `[<parent>.<name>]` of some names, and those below them, replaced by one table: in the place
 * of the first of them. Undefined where none is written as a table of its own. Every other character stays.
 */
export function replaceTables(
  text: string,
  parent: string,
  names: ReadonlySet<string>,
  name: string,
  value: JsonObject,
): string | undefined {
  const headers = headersOf(text);
  const parts: string[] = [];
  let at = 0;
  headers.forEach(({ path, start }, index) => {
    if (path[0] !== parent || !names.has(path[1] ?? "")) return;
    const next = headers[index + 1]?.start ?? text.length;
    const end = endOfTable(text, start, next);
    parts.push(text.slice(at, start), at === 0 ? renderTable(text, [parent, name], value) : "");
    at = end;
  });
  return at === 0 ? undefined : [...parts, text.slice(at)].join("");
}

/** The end of a table's last line that is neither blank nor a comment: what follows belongs to the next table. */
function endOfTable(text: string, start: number, next: number): number {
  let end = start;
  for (let line = start; line < next; ) {
    const newline = text.indexOf("\n", line);
    const stop = newline === -1 || newline >= next ? next : newline + 1;
    if (/^\s*[^\s#]/.test(text.slice(line, stop))) end = stop;
    line = stop;
  }
  return end;
}

function renderTable(text: string, path: readonly string[], value: JsonObject): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = Object.entries(value).map(([key, each]) => `${renderKey(key)} = ${JSON.stringify(each)}`);
  return [`[${path.map(renderKey).join(".")}]`, ...lines, ""].join(eol);
}

function renderKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
}

/** Finds the headers of tables: brackets at the start of a line that is part of no value. */
function headersOf(text: string): readonly TomlHeader[] {
  const headers: TomlHeader[] = [];
  let depth = 0;
  // The start of the line where nothing but blanks stood in it so far.
  let lineStart: number | null = 0;
  for (let at = text.startsWith("\ufeff") ? 1 : 0; at < text.length; ) {
    const character = text[at] ?? "";
    const isHeader = character === "[" && depth === 0 && lineStart !== null;
    if (isHeader) headers.push({ path: readPath(text, at), start: lineStart ?? at });
    if (isHeader || character === "#") at = endOr(text.indexOf("\n", at), text);
    else if (character === '"' || character === "'") at = endOfString(text, at);
    else at++;
    if (isHeader) continue;
    depth += { "[": 1, "{": 1, "]": -1, "}": -1 }[character] ?? 0;
    if (character === "\n") lineStart = at;
    else if (!/[\s#]/.test(character)) lineStart = null;
  }
  return headers;
}

function endOr(found: number, text: string): number {
  return found === -1 ? text.length : found;
}

/** Returns the offset behind a string that opens at `at`: basic or literal, of one line or several. */
function endOfString(text: string, at: number): number {
  const quote = text[at] ?? "";
  const triple = quote.repeat(3);
  const mark = text.startsWith(triple, at) ? triple : quote;
  for (let next = at + mark.length; next < text.length; next++) {
    if (quote === '"' && text[next] === "\\") next++;
    else if (text.startsWith(mark, next)) {
      // Up to two quotation marks may stand before the three that end it.
      let end = next + mark.length;
      while (mark === triple && end < next + 5 && text[end] === quote) end++;
      return end;
    }
  }
  return text.length;
}

/** Reads the names of a header, `[` or `[[` at `at`. */
function readPath(text: string, at: number): readonly string[] {
  const path: string[] = [];
  for (let next = text[at + 1] === "[" ? at + 2 : at + 1; next < text.length; ) {
    const character = text[next] ?? "";
    if (character === "]" || character === "\n") return path;
    if (character === '"' || character === "'") {
      const end = endOfString(text, next);
      path.push(readQuoted(text.slice(next, end)));
      next = end;
    } else if (/[A-Za-z0-9_-]/.test(character)) {
      const [word = ""] = /^[A-Za-z0-9_-]{1,1000}/.exec(text.slice(next, next + 1_000)) ?? [];
      path.push(word);
      next += word.length;
    } else next++;
  }
  return path;
}

/** Returns the name that a quoted key is; the text itself where its escapes are not those of JSON, so that it names nothing. */
function readQuoted(quoted: string): string {
  if (quoted.startsWith("'")) return quoted.slice(1, -1);
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted;
  }
}
