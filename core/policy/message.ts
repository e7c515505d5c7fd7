import type { CelValue } from "@bufbuild/cel";
import { type CelEngine, type Expression, ExpressionError } from "./cel/engine.ts";
import type { Scope, Variables } from "./cel/scope.ts";
import type { ExpressionFault } from "./cel/syntax.ts";
import { showText } from "./display.ts";
import { writeValue } from "./value-text.ts";

const mostInterpolations = 16;
const unevaluated = "[this message could not be evaluated]";

/** A rule's message: fixed text around values of the action. */
export interface Message {
  /** The message for one action; where a value cannot be had, the text as written with a marker, never an error. */
  render(variables: Variables): string;
}

/** Parses `text {{ expression }} text`; an expression ends at the first `}}`. */
export function compileMessage(text: string, engine: CelEngine, scope: Scope): Message | readonly ExpressionFault[] {
  const faults: ExpressionFault[] = [];
  const parts: (string | Expression)[] = [];
  let at = 0;
  for (let open = text.indexOf("{{"); open !== -1; open = text.indexOf("{{", at)) {
    const close = text.indexOf("}}", open);
    if (close === -1) return [{ offset: open, message: "expected `}}` after `{{`, got the end of the message" }];
    const source = text.slice(open + 2, close);
    const compiled = engine.compile(source.trim(), scope);
    const start = open + 2 + (source.length - source.trimStart().length);
    if ("faults" in compiled)
      faults.push(...compiled.faults.map((fault) => ({ ...fault, offset: start + fault.offset })));
    else parts.push(text.slice(at, open), compiled.expression);
    at = close + 2;
  }
  parts.push(text.slice(at));
  if (parts.length > mostInterpolations * 2 + 1) {
    faults.push({ offset: 0, message: `expected at most ${mostInterpolations} expressions in a message, got more` });
  }
  return faults.length > 0 ? faults : { render: (variables) => render(text, parts, variables) };
}

function render(text: string, parts: readonly (string | Expression)[], variables: Variables): string {
  try {
    return parts.map((part) => (typeof part === "string" ? part : showValue(part.evaluate(variables)))).join("");
  } catch (error) {
    if (error instanceof ExpressionError) return `${text} ${unevaluated}`;
    throw error;
  }
}

function showValue(value: CelValue): string {
  return showText(typeof value === "string" ? value : writeValue(value));
}
