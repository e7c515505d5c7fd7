import { isJsonObject, type Json } from "./json.ts";
import { namesOfPointer, valueAt } from "./json-pointer.ts";
import type { Redaction } from "./policy.ts";

/** Redactions in one verdict. */
export const maxRedactions = 256;

const members: readonly string[] = ["rule", "pointer", "start", "end", "replacement"];
const maxLengths = { rule: 128, pointer: 1_024 } as const;
const pointerPattern = /^\/output\/(?:[^~]|~[01])*$/s;
const replacementPattern = /^[ -~]{0,64}$/;
const none: readonly Redaction[] = Object.freeze([]);

/** Returns a redaction as a new frozen value, or what was expected of it. */
export function readRedaction(value: unknown): Redaction | string {
  if (typeof value !== "object" || value === null) return "each redaction to be an object";
  if (!Object.keys(value).every((key) => members.includes(key))) return "redactions of known members";
  const { rule, pointer, start, end, replacement } = value as Readonly<Record<string, unknown>>;
  if (!isText(rule, maxLengths.rule)) return "a rule in each redaction";
  if (!isText(pointer, maxLengths.pointer) || !pointerPattern.test(pointer)) return "a JSON Pointer below `/output`";
  if (!isOffset(start) || !isOffset(end) || start >= end) return "whole byte offsets, `start` below `end`";
  if (typeof replacement !== "string" || !replacementPattern.test(replacement)) {
    return "a replacement of at most 64 printable ASCII characters";
  }
  return Object.freeze({ rule, pointer, start, end, replacement });
}

/**
 * Merges the redactions of several policies, in the order of the chain, into one list: sorted by place, none overlapping.
 * Overlapping spans become one, with the rule and replacement of the redaction that came first.
 */
export function mergeRedactions(redactions: readonly Redaction[]): readonly Redaction[] {
  if (redactions.length === 0) return none;
  const merged: Ranked[] = [];
  for (const next of redactions.map((redaction, rank) => ({ ...redaction, rank })).sort(byPlace)) {
    const last = merged.at(-1);
    if (last === undefined || last.pointer !== next.pointer || next.start >= last.end) merged.push(next);
    else merged[merged.length - 1] = join(last, next);
  }
  return Object.freeze(merged.map(({ rank: _, ...redaction }) => Object.freeze(redaction)));
}

interface Ranked extends Redaction {
  /** Place in the order of the chain. */
  readonly rank: number;
}

function byPlace(a: Ranked, b: Ranked): number {
  if (a.pointer !== b.pointer) return a.pointer < b.pointer ? -1 : 1;
  return a.start - b.start;
}

function join(last: Ranked, next: Ranked): Ranked {
  const first = last.rank < next.rank ? last : next;
  return { ...first, start: last.start, end: Math.max(last.end, next.end) };
}

function isText(value: unknown, maxLength: number): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= maxLength && value.isWellFormed();
}

function isOffset(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

const root = "/output";

/** Returns the reason why redactions do not fit this output; undefined where they do. Quotes nothing of the output. */
export function findRedactionFault(output: Json, redactions: readonly Redaction[]): string | undefined {
  for (const [pointer, spans] of groupByText(redactions)) {
    const text = textAt(output, pointer);
    if (text === undefined) return "expected redactions of texts of the output";
    const bytes = Buffer.from(text);
    if (!spans.every(({ start, end }) => isBoundary(bytes, start) && isBoundary(bytes, end))) {
      return "expected redactions within their text, on code point boundaries";
    }
  }
  return undefined;
}

/**
 * The output with every redaction applied, frozen; the output itself where there is none. Shares what did not change.
 * `redactions` are merged and have no fault. Linear in the size of the output.
 */
export function redactOutput(output: Json, redactions: readonly Redaction[]): Json {
  if (redactions.length === 0) return output;
  const edits = newEdit();
  for (const redaction of redactions) {
    let edit = edits;
    for (const name of namesOfPointer(redaction.pointer.slice(root.length))) edit = editOf(edit, name);
    edit.spans.push(redaction);
  }
  return applyEdit(output, edits);
}

/** The text that a redaction without a fault takes away. */
export function redactedText(output: Json, { pointer, start, end }: Redaction): string {
  return Buffer.from(textAt(output, pointer) ?? "").toString("utf8", start, end);
}

/** The edits of one value: spans of a string, or edits of members. */
interface Edit {
  readonly spans: Redaction[];
  readonly members: Map<string, Edit>;
}

/** Groups redactions by their pointer, in their order. */
export function groupByText(redactions: readonly Redaction[]): ReadonlyMap<string, readonly Redaction[]> {
  const groups = new Map<string, Redaction[]>();
  for (const redaction of redactions) {
    const group = groups.get(redaction.pointer);
    if (group === undefined) groups.set(redaction.pointer, [redaction]);
    else group.push(redaction);
  }
  return groups;
}

function newEdit(): Edit {
  return { spans: [], members: new Map() };
}

function editOf(parent: Edit, name: string): Edit {
  const edit = parent.members.get(name) ?? newEdit();
  parent.members.set(name, edit);
  return edit;
}

function applyEdit(value: Json, { spans, members: changed }: Edit): Json {
  const change = (member: Json, name: string): Json => {
    const edit = changed.get(name);
    return edit === undefined ? member : applyEdit(member, edit);
  };
  if (typeof value === "string") return replaceSpans(value, spans);
  if (Array.isArray(value)) return Object.freeze(value.map((item: Json, index) => change(item, String(index))));
  if (!isJsonObject(value)) throw new TypeError("redactOutput: expected redactions without a fault");
  return Object.freeze(Object.fromEntries(Object.entries(value).map(([name, each]) => [name, change(each, name)])));
}

function replaceSpans(text: string, spans: readonly Redaction[]): string {
  const bytes = Buffer.from(text);
  const parts: string[] = [];
  let kept = 0;
  for (const { start, end, replacement } of spans) {
    parts.push(bytes.toString("utf8", kept, start), replacement);
    kept = end;
  }
  return parts.join("") + bytes.toString("utf8", kept);
}

/** The string at a pointer; undefined for one with lone surrogates, which has no byte offsets. */
function textAt(output: Json, pointer: string): string | undefined {
  const value = valueAt(output, pointer.slice(root.length));
  return typeof value === "string" && value.isWellFormed() ? value : undefined;
}

function isBoundary(bytes: Uint8Array, at: number): boolean {
  const byte = bytes[at];
  return byte === undefined ? at === bytes.length : (byte & 0xc0) !== 0x80;
}
