import { isJsonObject, type Json } from "./json.ts";
import { quoteVisible, scriptNote } from "./visible-text.ts";

interface Value {
  /** The member's name and a colon, or nothing. */
  readonly label: string;
  readonly value: Json;
  readonly depth: number;
  readonly comma: "," | "";
  readonly note: string;
}

const deepestIndent = 32;

/**
 * A value as indented JSON for a reader: every text whole and escaped as `quoteVisible` does it, every number as it was
 * parsed, members in their order. A line whose texts mix scripts says so behind `//`.
 * Linear, at any depth: indentation stops growing at 32 levels. Never cut.
 */
export function visibleJson(value: Json): string {
  const lines: string[] = [];
  const waiting: (Value | string)[] = [{ label: "", value, depth: 0, comma: "", note: "" }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    lines.push(typeof next === "string" ? next : firstLine(next, waiting));
  }
  return lines.join("\n");
}

/** The line a value begins with; what follows it is put on top of `waiting`. */
function firstLine({ label, value, depth, comma, note }: Value, waiting: (Value | string)[]): string {
  const indent = "  ".repeat(Math.min(depth, deepestIndent));
  const inner = valuesIn(value, depth + 1);
  if (inner.length === 0) return `${indent}${label}${scalarText(value)}${comma}${note || noteOf(value)}`;
  waiting.push(`${indent}${Array.isArray(value) ? "]" : "}"}${comma}`);
  for (const each of inner.reverse()) waiting.push(each);
  return `${indent}${label}${Array.isArray(value) ? "[" : "{"}${note}`;
}

function valuesIn(container: Json, depth: number): Value[] {
  if (Array.isArray(container)) {
    const last = container.length - 1;
    return container.map((value, index) => ({ label: "", value, depth, comma: index === last ? "" : ",", note: "" }));
  }
  if (!isJsonObject(container)) return [];
  const members = Object.entries(container);
  return members.map(([name, value], index) => ({
    label: `${quoteVisible(name)}: `,
    value,
    depth,
    comma: index === members.length - 1 ? "" : ",",
    note: noteOf(name),
  }));
}

function scalarText(value: Json): string {
  if (typeof value === "string") return quoteVisible(value);
  // Only an empty container comes here.
  if (Array.isArray(value)) return "[]";
  return isJsonObject(value) ? "{}" : String(value);
}

function noteOf(value: Json): string {
  const note = typeof value === "string" ? scriptNote(value) : undefined;
  return note === undefined ? "" : ` // ${note}`;
}
