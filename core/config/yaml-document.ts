import { Composer, type CST, type ErrorCode, Lexer, LineCounter, type ParsedNode, Parser } from "yaml";

/** Where something stands in a text; both count from 1. */
export interface TextPlace {
  readonly line: number;
  readonly column: number;
}

/** Hears of each fault; its words never quote the text, which may hold a secret. */
type FaultSink = (fault: string, place: TextPlace) => void;

/** Collections inside one another. The composer recurses once a level; a stack overflow inside it can end the process. */
const deepest = 32;
/** Lexical tokens; about 30,000 keys. Bounds the time a hostile file may take. */
const maxTokens = 250_000;

/** One composed document, and the way from its offsets to places. */
interface YamlDocument {
  readonly root: ParsedNode | null;
  placeOf(offset: number): TextPlace;
}

/**
 * Composes exactly one YAML 1.2 document within fixed bounds.
 * Syntax errors, warnings, directives and further documents are faults; the root is null where the text is not YAML, or empty.
 */
export function composeYaml(text: string, onFault: FaultSink): YamlDocument {
  const placeOf = placeFinder(text);
  const tokens = parseTokens(text, placeOf, onFault);
  if (tokens === null) return { root: null, placeOf };
  // Duplicate keys are looked for later, in linear time: the composer compares every pair of keys.
  const composer = new Composer({ strict: true, stringKeys: true, uniqueKeys: false, resolveKnownTags: false });
  const [document] = composer.compose(tokens, true, text.length);
  if (document === undefined) throw new TypeError("composeYaml: expected the composer to yield a document");
  const complaints = [...document.errors, ...document.warnings];
  for (const { code, pos } of complaints) onFault(syntaxText[code], placeOf(pos[0]));
  return { root: complaints.length === 0 ? document.contents : null, placeOf };
}

/** The concrete tokens of the first document, or null where a bound was met. */
function parseTokens(text: string, placeOf: (offset: number) => TextPlace, onFault: FaultSink): CST.Token[] | null {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    const tooDeep = parser.stack.length > deepest && parser.stack.filter((open) => "items" in open).length > deepest;
    if (!tooDeep && ++count <= maxTokens) continue;
    const bound = tooDeep ? `${deepest} levels` : `${maxTokens} tokens`;
    onFault(`expected at most ${bound}, got more`, placeOf(parser.offset));
    return null;
  }
  tokens.push(...parser.end());
  return firstDocument(tokens, placeOf, onFault);
}

function firstDocument(tokens: CST.Token[], placeOf: (offset: number) => TextPlace, onFault: FaultSink): CST.Token[] {
  const directive = tokens.find(({ type }) => type === "directive");
  if (directive !== undefined) {
    // `%YAML 1.1` would turn `no` and `on` into booleans.
    onFault("expected no directives, got one", placeOf(directive.offset));
  }
  const second = tokens.filter(({ type }) => type === "document")[1];
  if (second === undefined) return tokens.filter(({ type }) => type !== "directive");
  onFault("expected one document, got a second", placeOf(second.offset));
  return tokens.slice(0, tokens.indexOf(second)).filter(({ type }) => type !== "directive");
}

function placeFinder(text: string): (offset: number) => TextPlace {
  const lines = new LineCounter();
  lines.addNewLine(0);
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines.addNewLine(at + 1);
  return (offset) => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
}

/** Our words for the parser's complaints: its own may quote a piece of the file, and with it a secret. */
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
  MISSING_CHAR: "expected a closing quote, a closing bracket, a comma, a colon or a space here",
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
