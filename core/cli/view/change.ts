import { quoteVisible, visibleJson } from "../../action/visible-text.ts";
import type { ArgumentChange } from "../../approval/argument-diff.ts";

/** Renders one difference for a terminal: its place, then both values whole, every character that is not seen escaped. */
export function changeLines(change: ArgumentChange): readonly string[] {
  const pointer = quoteVisible(change.pointer);
  const before = "before" in change ? valueLines("-", change.before) : [];
  const after = "after" in change ? valueLines("+", change.after) : [];
  return [`${change.kind} ${pointer}`, ...before, ...after];
}

function valueLines(sign: string, value: Parameters<typeof visibleJson>[0]): readonly string[] {
  return visibleJson(value)
    .split("\n")
    .map((line) => `${sign} ${line}`);
}
