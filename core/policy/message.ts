import { type CelValue, isCelList, isCelMap } from "@bufbuild/cel";
import { type CelEngine, type Expression, ExpressionError } from "./cel/engine.ts";
import type { Scope, Variables } from "./cel/scope.ts";
import type { ExpressionFault } from "./cel/syntax.ts";
import { showText } from "./display.ts";

const mostInterpolations = 16;
/** Items and members shown of one interpolated list or map; the text is cut after that anyway. */
const mostShown = 64;
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
  return showText(typeof value === "string" ? value : writeValue(value, 3));
}

function writeValue(value: CelValue, levels: number): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 512));
  if (isCelList(value)) return levels === 0 ? "[…]" : `[${take(value, (item) => writeValue(item, levels - 1))}]`;
  if (isCelMap(value)) {
    const member = ([name, item]: readonly [unknown, CelValue]): string =>
      `${String(name)}: ${writeValue(item, levels - 1)}`;
    return levels === 0 ? "{…}" : `{${take(value, member)}}`;
  }
  return typeof value === "object" && value !== null ? "[value]" : String(value);
}

function take<T>(items: Iterable<T>, write: (item: T) => string): string {
  const texts: string[] = [];
  for (const item of items) {
    if (texts.length === mostShown) return `${texts.join(", ")}, …`;
    texts.push(write(item));
  }
  return texts.join(", ");
}
