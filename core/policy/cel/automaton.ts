import type { RE2JS } from "@bufbuild/re2";

type Program = ReturnType<RE2JS["re2"]>["prog"];
type Instruction = ReturnType<Program["getInst"]>;

/** The engine's instruction codes. */
const op = { alt: 1, altMatch: 2, capture: 3, emptyWidth: 4, nop: 7, rune: 8, anyRune: 10, anyButNewline: 11 } as const;
const foldCase = 1;

/** Far below the 10,000 states at which the engine gives up its automaton and simulates, at many times the cost. */
const mostStates = 1_000;
/** Instructions looked at while counting; what is not counted by then is not small. */
const mostWork = 2_000_000;

/**
 * Whether a pattern's deterministic automaton is known to be small: then the engine reads each character once,
 * whatever the text. False for patterns with `^`, `$` or `\b`, which the engine resolves anew at every character.
 */
export function isSmallAutomaton(program: Program): boolean {
  const letters = representatives(program);
  const start = letters === undefined ? undefined : closure(program, [program.start]);
  if (letters === undefined || start === undefined) return false;
  const seen = new Set([start.join(",")]);
  const open = [start];
  let work = 0;
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    const readers = state.map((pc) => program.getInst(pc)).filter(isRune);
    for (const letter of letters) {
      work += readers.length;
      const read = readers.filter((each) => takes(each, letter));
      // Nothing read: the search begins anew, in the state it began in.
      if (read.length === 0) continue;
      const next = closure(program, [...read.map((each) => each.out), program.start]);
      if (next === undefined || work > mostWork) return false;
      const key = next.join(",");
      if (seen.has(key)) continue;
      if (seen.size === mostStates) return false;
      seen.add(key);
      open.push(next);
    }
  }
  return true;
}

/** Everything reachable without reading; undefined where that depends on the place in the text. */
function closure(program: Program, from: readonly number[]): number[] | undefined {
  const reached = new Set<number>();
  const open = [...from];
  for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
    if (reached.has(pc)) continue;
    reached.add(pc);
    const each = program.getInst(pc);
    if (each.op === op.emptyWidth) return undefined;
    if (each.op === op.alt || each.op === op.altMatch) open.push(each.out, each.arg);
    if (each.op === op.nop || each.op === op.capture) open.push(each.out);
  }
  return Array.from(reached).sort((a, b) => a - b);
}

function isRune({ op: code }: Instruction): boolean {
  return code >= op.rune && code <= op.anyButNewline;
}

function takes(each: Instruction, letter: number): boolean {
  if (each.op === op.anyRune) return true;
  return each.op === op.anyButNewline ? letter !== 0x0a : each.matchRune(letter);
}

/** One character of every class the pattern tells apart; undefined where case folding reaches beyond ASCII letters. */
function representatives(program: Program): readonly number[] | undefined {
  const starts = new Set([0, 0x0a, 0x0b]);
  for (const each of program.inst.filter(isRune)) {
    const [single] = each.runes;
    if (each.runes.length !== 1 || single === undefined) {
      for (const [index, rune] of each.runes.entries()) starts.add(index % 2 === 0 ? rune : rune + 1);
    } else if ((each.arg & foldCase) === 0) {
      starts.add(single).add(single + 1);
    } else {
      if (single > 0x7f) return undefined;
      for (const rune of foldings(single)) starts.add(rune).add(rune + 1);
    }
  }
  return Array.from(starts);
}

/** An ASCII character's foldings; `k` and `s` have one each outside ASCII (the Kelvin sign, the long s). */
function foldings(rune: number): readonly number[] {
  const text = String.fromCharCode(rune);
  const cases = [text.toLowerCase(), text.toUpperCase()].map((each) => each.charCodeAt(0));
  if (text.toLowerCase() === "k") cases.push(0x212a);
  if (text.toLowerCase() === "s") cases.push(0x17f);
  return cases;
}
