import { canonicalJson } from "../../core/action/canonical-json.ts";
import { isJsonObject, type Json } from "../../core/action/json.ts";
import { killScopes } from "../../core/kill/kill.ts";
import { type Draft, decision, event, keys, otherSession, outcome, session } from "./evidence-world.ts";
import {
  distort,
  factChain,
  forgeChain,
  goodWitness,
  meddle,
  type OpenLines,
  type Presented,
  resign,
} from "./forgery.ts";

/** A whole number from 0 up to, not including, its argument. */
export type Dice = (sides: number) => number;

/** The same throws for the same seed (mulberry32). */
export function seededDice(seed: number): Dice {
  let state = seed;
  return (sides) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % sides;
  };
}

/** Falsifies a good bundle in one of many ways: its bytes, one file's text, or one member, with or without a signature. */
export function mutate(dice: Dice): Presented {
  return pick(dice, ways)(dice);
}

const ways: readonly ((dice: Dice) => Presented)[] = [
  (dice) => ({ ...distort((bundle) => bundle), witness: mutateText(goodWitness, dice) }),
  (dice) => distort((bundle) => mutateBytes(bundle, dice)),
  (dice) => meddle((open) => mutateLine(open, dice, mutateText)),
  (dice) => resign((open) => mutateLine(open, dice, mutateText)),
  (dice) => resign((open) => mutateLine(open, dice, mutateLineJson)),
  (dice) => meddle((open) => mutateLine(open, dice, mutateLineJson)),
  (dice) => resign((open) => mutateEntry(open, dice, ["record"])),
  (dice) => resign((open) => mutateEntry(open, dice, ["fields", "proof"])),
  (dice) => resign((open) => void Object.assign(open, { head: mutateLineJson(open.head, dice) })),
  (dice) => resign((open) => void Object.assign(open, { entries: shuffleLines(open.entries, dice) })),
  (dice) => resign((open) => mutateLines(open, dice)),
  (dice) =>
    forgeChain((drafts) => {
      const at = 1 + dice(drafts.length - 1);
      return dice(3) === 0 ? drafts.toSpliced(at, dice(2), drafts[1 + dice(12)] as Draft) : drafts;
    }, recordMutation(dice)),
  (dice) => resign((open) => mutateEntry(open, dice, ["facts", "fields"]), keys.second, factChain),
  (dice) =>
    forgeChain(
      (drafts) => drafts.toSpliced(5, 0, decision("fact-1", "allow"), outcome("fact-1", "success")),
      dice(4) === 0 ? undefined : recordMutation(dice),
    ),
  (dice) => forgeChain((drafts) => addKills(drafts, dice), dice(2) === 0 ? recordMutation(dice) : undefined),
];

/** Changes lines of a bundle in one of the ways that a new seal covers: its head, a record, a field, a proof, or which lines there are. */
export function mutateLines(open: OpenLines, dice: Dice): void {
  const lines = { ...open };
  pick(dice, [
    () => mutateLine(lines, dice, mutateText),
    () => mutateLine(lines, dice, mutateLineJson),
    () => mutateEntry(lines, dice, ["record", "fields", "proof"]),
    () => Object.assign(lines, { head: mutateLineJson(lines.head, dice) }),
    () => Object.assign(lines, { head: mutateState(lines.head, dice) }),
    () => Object.assign(lines, { entries: shuffleLines(lines.entries, dice) }),
    () => Object.assign(lines, { entries: lines.entries.slice(0, 1 + dice(lines.entries.length)) }),
  ])();
  Object.assign(open, lines);
}

/** Changes something in the states of a bundle's first line, where it has any. */
function mutateState(head: string, dice: Dice): string {
  const { states = [], ...rest } = JSON.parse(head) as Draft;
  return canonicalJson({ ...rest, states: mutateJson(states, dice) });
}

/** Stops and releases this and that, here and there. */
function addKills(drafts: readonly Draft[], dice: Dice): Draft[] {
  let added = [...drafts];
  for (let count = 1 + dice(4); count > 0; count--) {
    const named = {
      session: pick(dice, [session, otherSession]),
      principal: pick(dice, ["principal-v1-1", "principal-v1-2"]),
      gateway: pick(dice, odd),
    };
    const scope = pick(dice, [...killScopes, ...odd, undefined]);
    const kept = Object.entries(named).filter(([name]) => name === (scope ?? "session") || dice(6) === 0);
    const scoped = scope === undefined ? {} : { scope };
    const kill = { event: pick(dice, ["killed", "killed", "released"]), ...scoped, ...Object.fromEntries(kept) };
    added = added.toSpliced(1 + dice(added.length - 1), 0, event("session", kill));
  }
  return added;
}

/** Changes the first line, the last, or one of a record. */
function mutateLine(open: OpenLines, dice: Dice, change: (line: string, dice: Dice) => string): void {
  const part = dice(4);
  if (part === 0) open.head = change(open.head, dice);
  else if (part === 1) open.seal = change(open.seal, dice);
  else {
    const at = dice(open.entries.length);
    open.entries[at] = change(String(open.entries[at]), dice);
  }
}

function mutateEntry(open: OpenLines, dice: Dice, members: readonly string[]): void {
  const at = dice(open.entries.length);
  const entry = JSON.parse(String(open.entries[at])) as Draft;
  const member = pick(dice, members);
  open.entries[at] = canonicalJson({ ...entry, [member]: mutateJson(entry[member] as Json, dice) });
}

function mutateLineJson(line: string, dice: Dice): string {
  return canonicalJson(mutateJson(JSON.parse(line) as Json, dice));
}

/** Changes one member of a record before it is hashed: proofs, links and signatures follow. */
function recordMutation(dice: Dice): (record: Draft, seq: number) => void {
  const target = dice(18);
  return (record, seq) => {
    if (seq !== target) return;
    const name = pick(
      dice,
      Object.keys(record).filter((each) => each !== "seq" && each !== "time"),
    );
    const mutated = mutateJson(record[name] as Json, dice);
    // The world looks for these two to be there.
    if ((name !== "action" && name !== "session") || isJsonObject(mutated)) record[name] = mutated;
  };
}

const odd: readonly Json[] = [
  null,
  true,
  false,
  0,
  1,
  -1,
  2,
  15,
  17,
  1.5,
  1e21,
  1e-7,
  999_999_999_999_999,
  1_000_000_000_000_000,
  Number.MAX_SAFE_INTEGER,
  "",
  "a",
  "\u0000",
  "é",
  "\u{1f600}",
  "\uffff",
  "\u2028",
  "__proto__",
  "0".repeat(64),
  "approved",
  "denied",
  "expired",
  "post_mortem",
  "killed",
  "allow",
  "review",
  "block",
  "dispatched",
  "consumed",
  "task",
  "exact",
  "apr_1",
  [],
  [[]],
  {},
  { a: 1 },
  { "\u{1f600}": 1, "\uffff": 2 },
];

/** One member somewhere inside: changed, added, taken out, or given the value of another. */
function mutateJson(value: Json, dice: Dice): Json {
  const isInner = typeof value === "object" && value !== null && Object.keys(value).length > 0;
  if (!isInner) return pick(dice, odd);
  if (dice(8) === 0) return addMember(value, dice);
  const name = pick(dice, Object.keys(value));
  const copy = structuredClone(value) as Draft;
  const inner = copy[name] as Json;
  if (dice(10) === 0 && !Array.isArray(copy)) delete copy[name];
  else
    copy[name] = dice(3) === 0 ? pick(dice, [...odd, inner, pick(dice, Object.values(copy))]) : mutateJson(inner, dice);
  return copy;
}

function addMember(value: Json, dice: Dice): Json {
  if (Array.isArray(value)) return [...value, pick(dice, [...odd, value[0] as Json])];
  const name = pick(dice, [
    "a",
    "seq",
    "é",
    "\u{1f600}",
    "\uffff",
    "approval",
    "break_glass",
    "scope",
    "session",
    "detail",
  ]);
  return { ...(value as Draft), [name]: pick(dice, [...odd, { fingerprint: "f", id: "apr_1", state: "consumed" }]) };
}

const snippets = [
  " ",
  "\n",
  "\u0000",
  "\\u0000",
  "\\ud800",
  "\ufeff",
  ",",
  "0",
  "1.0",
  "1e3",
  "-0",
  "1e400",
  "NaN",
  "Infinity",
  '"',
  "{}",
  "[]",
  "[".repeat(200),
  "1".repeat(20),
  "9007199254740993",
  '"a":1,',
  "é",
  "\u{1f600}",
  "=",
  "/",
  "— ",
  "\r",
  "\u2028",
  "\\/",
  "\\u0061",
  "true",
  "null",
];

function mutateText(text: string, dice: Dice): string {
  const at = dice(text.length + 1);
  const cut = dice(3) === 0 ? dice(4) : 0;
  return text.slice(0, at) + (dice(6) === 0 ? "" : pick(dice, snippets)) + text.slice(at + cut);
}

function mutateBytes(bundle: Buffer, dice: Dice): Buffer {
  const bytes = Buffer.from(bundle);
  const at = dice(bytes.length);
  if (dice(4) === 0) return Buffer.concat([bytes.subarray(0, at), Buffer.alloc(dice(600)), bytes.subarray(at)]);
  if (dice(8) === 0) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + dice(1200))]);
  bytes[at] = dice(256);
  return bytes;
}

function shuffleLines(lines: string[], dice: Dice): string[] {
  const at = dice(lines.length);
  const other = dice(lines.length);
  if (dice(3) === 0) return lines.toSpliced(at, 1);
  if (dice(20) === 0) return [];
  return dice(2) === 0
    ? lines.toSpliced(at, 0, lines[other] as string)
    : lines.with(at, lines[other] as string).with(other, lines[at] as string);
}

function pick<T>(dice: Dice, values: readonly T[]): T {
  return values[dice(values.length)] as T;
}
