import type { Redaction } from "./policy.ts";

/** The most redactions one verdict may ask for. */
export const mostRedactions = 256;

const members: readonly string[] = ["rule", "pointer", "start", "end", "replacement"];
const longest = { rule: 128, pointer: 1_024 } as const;
const pointerPattern = /^\/output\/(?:[^~]|~[01])*$/s;
const replacementPattern = /^[ -~]{0,64}$/;
const none: readonly Redaction[] = Object.freeze([]);

/** A redaction as a frozen value of our own making, or what was expected of it. */
export function readRedaction(value: unknown): Redaction | string {
  if (typeof value !== "object" || value === null) return "each redaction to be an object";
  if (!Object.keys(value).every((key) => members.includes(key))) return "redactions of known members";
  const { rule, pointer, start, end, replacement } = value as Readonly<Record<string, unknown>>;
  if (!isText(rule, longest.rule)) return "a rule in each redaction";
  if (!isText(pointer, longest.pointer) || !pointerPattern.test(pointer)) return "a JSON Pointer below `/output`";
  if (!isOffset(start) || !isOffset(end) || start >= end) return "whole byte offsets, `start` below `end`";
  if (typeof replacement !== "string" || !replacementPattern.test(replacement)) {
    return "a replacement of at most 64 printable ASCII characters";
  }
  return Object.freeze({ rule, pointer, start, end, replacement });
}

/**
 * What several policies ask for, in the order of the chain, as one list: sorted by place, none overlapping. Spans that
 * overlap become one, which has rule and replacement of the redaction that came first.
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

function isText(value: unknown, most: number): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= most && value.isWellFormed();
}

function isOffset(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
