import type { SqlDialect } from "../../action/action-fact.ts";
import { hasUnprintable } from "../../action/visible-text.ts";

/** A token outside comments: words in lower case, quoted names with their quotes undone, all others as written. */
export interface SqlToken {
  readonly type: "word" | "name" | "string" | "number" | "sign";
  readonly text: string;
}

/** The longest text that is read, in bytes of UTF-8. */
const maxBytes = 16 * 1024;
const maxTokens = 2000;
const maxDepth = 40;
/** Operators and words that can nest a tree without brackets: a parser recurses once for each. */
const maxChain = 400;
const maxStatements = 50;
/** Dots in one name: `server.database.schema.table.column` has four. A parser's time grows with the square of more. */
const maxDots = 8;
/** DataFusion's parser nests statements behind these words without a bound of its own, and traps at some hundreds. */
const statementWords = new Set("explain describe desc prepare begin if while create declare try catch else".split(" "));
const maxStatementWords = 30;

/** White space and comments are told apart by every server alike only without these. */
const oddBlank = /[^\S \t\r\n]|\r(?!\n)/u;
/** Letters that a server may fold to a quote. */
const quoteLike = /[\u02b9-\u02bc\u02c8\uff02\uff07]/;
/** DataFusion's parser traps where `._` follows no name. */
const numberLike = /(?:^|[^\w"`])\._/;
const blank = /[ \t\r\n]+/y;
/** `@` and `#` begin names in MySQL, SQLite and SQL Server, and operators in PostgreSQL. */
const words: Readonly<Record<SqlDialect, RegExp>> = {
  postgresql: /[\p{L}_][\p{L}\p{M}\p{N}_$]*/uy,
  mysql: /@{0,2}[\p{L}_][\p{L}\p{M}\p{N}_$]*/uy,
  sqlite: /@?[\p{L}_][\p{L}\p{M}\p{N}_$]*/uy,
  mssql: /(?:@{1,2}|#{1,2})?[\p{L}_][\p{L}\p{M}\p{N}_@#$]*/uy,
};
const number = /0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;
const dollarTag = /\$(?:[A-Za-z_][A-Za-z0-9_]*)?\$/y;
const parameter = /\$\d+/y;
const sign =
  /<=>|->>|#>>|::|->|#>|@>|<@|@@|@\?|<>|!=|<=|>=|==|\|\||&&|<<|>>|!~~\*|~~\*|!~~|~~|!~\*|!~|~\*|[-+*/%^<>=~!&|.,;:()[\]?#@]/y;
/** A string may follow these words at once: `N'…'`, `E'…'`, `_utf8'…'`. */
const stringPrefix: Readonly<Record<SqlDialect, RegExp>> = {
  postgresql: /^[ebxn]$/,
  mysql: /^(?:[bxn]|_[a-z0-9]+)$/,
  sqlite: /^x$/,
  mssql: /^n$/,
};
const nameQuotes: Readonly<Record<SqlDialect, string>> = { postgresql: '"', mysql: '`"', sqlite: '"`[', mssql: '"[' };
const chainWords = new Set(
  "and or not xor is like between case when union except intersect minus join select explain describe desc collate interval prepare".split(
    " ",
  ),
);

/**
 * Returns the tokens of a text. Returns null for a text in which two servers, or one server with other settings, could find
 * other tokens, and for one that is longer, deeper or more tangled than a parser should be given: invisible characters,
 * executable and nested comments, a backslash before a quote, quotes that do not end, `$$` where it is no quote, braces.
 */
export function readSqlTokens(text: string, dialect: SqlDialect): readonly SqlToken[] | null {
  if (text.length > maxBytes || Buffer.byteLength(text) > maxBytes || !text.isWellFormed()) return null;
  if (
    oddBlank.test(text) ||
    quoteLike.test(text) ||
    numberLike.test(text) ||
    hasUnprintable(text.replace(/[\t\r\n]/g, " "))
  )
    return null;
  const tokens = new Scanner(text, dialect).scan();
  return tokens !== null && hasFewStatementWords(tokens) && isWithinBounds(tokens) ? tokens : null;
}

/** The statements of a text: its tokens between semicolons, without empty ones. */
export function splitStatements(tokens: readonly SqlToken[]): readonly (readonly SqlToken[])[] {
  const statements: SqlToken[][] = [[]];
  for (const token of tokens) {
    if (isSign(token, ";")) statements.push([]);
    else statements.at(-1)?.push(token);
  }
  return statements.filter((each) => each.length > 0);
}

/** Returns true for this sign, outside quotes. */
export function isSign(token: SqlToken | undefined, text: string): boolean {
  return token?.type === "sign" && token.text === text;
}

function hasFewStatementWords(tokens: readonly SqlToken[]): boolean {
  return tokens.filter(({ text }) => statementWords.has(text)).length <= maxStatementWords;
}

function isWithinBounds(tokens: readonly SqlToken[]): boolean {
  if (splitStatements(tokens).length > maxStatements) return false;
  let depth = 0;
  let chain = 0;
  for (const { type, text } of tokens) {
    if (type === "sign" && (text === "(" || text === "[")) depth += 1;
    else if (type === "sign" && (text === ")" || text === "]")) depth -= 1;
    else if (type === "sign" && !",;.".includes(text)) chain += 1;
    else if (type === "word" && chainWords.has(text)) chain += 1;
    if (depth < 0 || depth > maxDepth || chain > maxChain) return false;
  }
  return depth === 0 && hasShortNames(tokens);
}

function hasShortNames(tokens: readonly SqlToken[]): boolean {
  let dots = 0;
  return tokens.every((token, at) => {
    if (isSign(token, ".")) dots += 1;
    else if (!isSign(tokens[at - 1], ".")) dots = 0;
    return dots <= maxDots;
  });
}

/** Reads tokens from the front; each method returns false where the text is odd. */
class Scanner {
  readonly #text: string;
  readonly #dialect: SqlDialect;
  readonly #tokens: SqlToken[] = [];
  #at = 0;

  constructor(text: string, dialect: SqlDialect) {
    this.#text = text;
    this.#dialect = dialect;
  }

  scan(): readonly SqlToken[] | null {
    while (this.#at < this.#text.length) {
      if (this.#match(blank) !== null) continue;
      if (!this.#takeNext() || this.#tokens.length > maxTokens) return null;
    }
    return this.#tokens;
  }

  #takeNext(): boolean {
    const next = this.#text[this.#at] ?? "";
    const pair = this.#text.slice(this.#at, this.#at + 2);
    if (pair === "--") return this.#takeLineComment(2);
    if (next === "#" && this.#dialect === "mysql") return this.#takeLineComment(1);
    if (pair === "/*") return this.#takeBlockComment();
    if (pair === "*/") return false;
    if (next === "'") return this.#takeQuoted("'", "'", "string");
    if (nameQuotes[this.#dialect].includes(next)) return this.#takeName(next);
    if (next === "$") return this.#takeDollar();
    return this.#takePlain();
  }

  /** INVARIANT: ends at the line feed, as every server has it; `--` is no comment of MySQL without a blank behind it. */
  #takeLineComment(opening: number): boolean {
    if (
      opening === 2 &&
      this.#dialect === "mysql" &&
      !/^--(?:[ \t\r\n]|$)/.test(this.#text.slice(this.#at, this.#at + 3))
    ) {
      return false;
    }
    const end = this.#text.indexOf("\n", this.#at);
    this.#at = end === -1 ? this.#text.length : end + 1;
    return true;
  }

  #takeBlockComment(): boolean {
    const end = this.#text.indexOf("*/", this.#at + 2);
    if (end === -1) return false;
    const inside = this.#text.slice(this.#at + 2, end);
    this.#at = end + 2;
    if (inside.includes("/*") || /^(?:!|M!)/i.test(inside)) return false;
    return !inside.startsWith("+") || !/\bset/i.test(inside);
  }

  #takeName(opening: string): boolean {
    const isString = this.#dialect === "mysql" && opening === '"';
    return this.#takeQuoted(opening, opening === "[" ? "]" : opening, isString ? "string" : "name");
  }

  #takeQuoted(opening: string, closing: string, type: "string" | "name"): boolean {
    if (this.#isGluedToWord(type)) return false;
    const start = this.#at + 1;
    for (let end = this.#text.indexOf(closing, start); end !== -1; end = this.#text.indexOf(closing, end + 2)) {
      if (this.#text[end + 1] === closing) continue;
      const inside = this.#text.slice(start, end);
      if (hasOddBackslash(`${inside}${closing}`) || (opening === "[" && inside.includes("]"))) return false;
      this.#at = end + 1;
      this.#tokens.push({ type, text: inside.replaceAll(closing + closing, closing) });
      return !isWordStart(this.#text, this.#at);
    }
    return false;
  }

  /** `select'a'` hides a word from whoever looks for blanks, and prefixes nobody knows change what a string means. */
  #isGluedToWord(type: "string" | "name"): boolean {
    const before = this.#text[this.#at - 1] ?? "";
    if (/['"`\]]/.test(before) || /u&$/i.test(this.#text.slice(Math.max(0, this.#at - 2), this.#at))) return true;
    if (!/[\p{L}\p{M}\p{N}_@#$]/u.test(before)) return false;
    const last = this.#tokens.at(-1);
    return type === "name" || last?.type !== "word" || !stringPrefix[this.#dialect].test(last.text);
  }

  #takeDollar(): boolean {
    if (this.#dialect !== "postgresql") return false;
    if (this.#match(parameter) !== null) return this.#push("number", "?");
    const tag = this.#match(dollarTag);
    if (tag === null) return false;
    const end = this.#text.indexOf(tag, this.#at);
    if (end === -1) return false;
    const inside = this.#text.slice(this.#at, end);
    this.#at = end + tag.length;
    return this.#push("string", inside) && !isWordStart(this.#text, this.#at);
  }

  #takePlain(): boolean {
    const digits = this.#match(number);
    if (digits !== null) return this.#push("number", digits) && !isWordStart(this.#text, this.#at);
    const found = this.#match(words[this.#dialect]);
    if (found !== null) return found.normalize("NFKC") === found && this.#push("word", found.toLowerCase());
    const text = this.#match(sign);
    if (text === null) return false;
    return this.#push("sign", text);
  }

  #push(type: SqlToken["type"], text: string): true {
    this.#tokens.push({ type, text });
    return true;
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined || found === "") return null;
    this.#at += found.length;
    return found;
  }
}

/** True where a server that escapes with backslashes and one that does not end the text at different quotes. */
function hasOddBackslash(quoted: string): boolean {
  return /(?<!\\)(?:\\\\)*\\['"`]/.test(quoted);
}

function isWordStart(text: string, at: number): boolean {
  return /[\p{L}\p{N}_$]/u.test(text[at] ?? "");
}
