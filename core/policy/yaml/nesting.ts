import { CST, Lexer } from "yaml";

/**
 * The place where a YAML text goes deeper than `deepest`, told from its tokens before anything is built:
 * one megabyte of `[` costs the parser seconds, this a few microseconds.
 * Depth by indentation alone is left to the builder; each such level costs the attacker a longer line.
 */
export function checkNesting(text: string, deepest: number): { line: number; column: number } | undefined {
  let line = 1;
  let column = 1;
  let flow = 0;
  let compact = 0;
  for (const lexeme of new Lexer().lex(text)) {
    const type = CST.tokenType(lexeme);
    if (type === "flow-map-start" || type === "flow-seq-start") flow++;
    else if (type === "flow-map-end" || type === "flow-seq-end") flow--;
    else if (type === "seq-item-ind" || type === "explicit-key-ind") compact++;
    else if (type === "newline") compact = 0;
    if (flow + compact > deepest) return { line, column };
    const newline = lexeme.lastIndexOf("\n");
    if (newline === -1) column += lexeme.length;
    else {
      line += lexeme.split("\n").length - 1;
      column = lexeme.length - newline;
    }
  }
  return undefined;
}
