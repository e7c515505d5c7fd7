import { CST, Lexer } from "yaml";

/** Something a pack may not use, where its token begins. */
export interface Refusal {
  readonly offset: number;
  readonly message: string;
}

const refused: ReadonlyMap<string, string> = new Map([
  ["alias", "expected no alias; write the value out"],
  ["anchor", "expected no anchor"],
  ["tag", "expected no tag"],
  ["directive-line", "expected no directive"],
]);

/** Tokens of the lexer's own, which stand for no character of the text. */
const marks: ReadonlySet<string> = new Set(["doc-mode", "flow-error-end", "scalar"]);

const mostRefusals = 100;

/**
 * Finds in the tokens of a YAML text what a pack may not use, before anything is built from it: one megabyte of `[`
 * costs the parser seconds, this a few microseconds. Depth by indentation alone is left to the builder; each such
 * level costs the attacker a longer line. At most 100 are reported, and none after the text went too deep.
 */
export function scanTokens(text: string, deepest: number): readonly Refusal[] {
  const found: Refusal[] = [];
  const depth = new Depth();
  let offset = 0;
  let mark = "";
  for (const lexeme of new Lexer().lex(text)) {
    // After its mark comes the text of a scalar, which may look like anything.
    const type = mark === "scalar" ? "" : (CST.tokenType(lexeme) ?? "");
    const message = refused.get(type);
    if (message !== undefined && found.length < mostRefusals) found.push({ offset, message });
    if (depth.after(type) > deepest) return [...found, { offset, message: tooDeep(deepest) }];
    mark = marks.has(type) ? type : "";
    if (mark === "") offset += lexeme.length;
  }
  return found;
}

/** Open brackets, and the `-` and `?` that open levels on one line. */
class Depth {
  #brackets = 0;
  #dashes = 0;

  after(type: string): number {
    if (type === "flow-map-start" || type === "flow-seq-start") this.#brackets++;
    else if (type === "flow-map-end" || type === "flow-seq-end") this.#brackets--;
    else if (type === "seq-item-ind" || type === "explicit-key-ind") this.#dashes++;
    else if (type === "newline") this.#dashes = 0;
    return this.#brackets + this.#dashes;
  }
}

export function tooDeep(deepest: number): string {
  return `expected at most ${deepest} levels, got more`;
}
