import { RE2JS } from "@bufbuild/re2";
import type { Meter } from "./meter.ts";

const maxPattern = 1_024;
/** Instructions of a compiled pattern. */
const maxProgram = 2_000;
/** Work units one match may take. */
const maxMatch = 400_000;
/** Characters of one text; the engine computes a transition when it first reads a character outside ASCII. */
const maxText = { ascii: 65_536, unicode: 16_384 } as const;
const maxKept = 256;
/** Characters outside ASCII after which the engine is created anew: it keeps an entry for each that it ever read. */
const maxUnicodeRead = 262_144;
const ascii = /^[\p{ASCII}]*$/u;

/** A compiled pattern: linear in the text, at a price known before it runs. */
interface Pattern {
  /**
   * Matches `text`. Charges `meter` before: a few units a character where the automaton is known to be small, otherwise
   * one for each character and instruction. Throws RangeError where that is more than one match may spend. Without a
   * meter, as for settings, nothing is limited.
   */
  test(text: string, meter?: Meter): boolean;
}

/**
 * Compiles a pattern of a pack on RE2: no lookaround, no backreferences, never exponential.
 * `isLiteral` patterns are analysed for a small automaton, which may take some milliseconds.
 * Throws RangeError, or the engine's own error, whose message names the construct.
 */
export function compilePattern(source: string, isLiteral: boolean): Pattern {
  if (source.length > maxPattern) {
    throw new RangeError(`expected a pattern of at most ${maxPattern} characters, got ${source.length}`);
  }
  let engine = RE2JS.compile(source);
  const program = engine.re2().prog;
  const size = program.numInst();
  if (size > maxProgram) {
    throw new RangeError(`expected a pattern of at most ${maxProgram} instructions, got ${size}`);
  }
  const isSmall = isLiteral && isSmallAutomaton(program);
  const worst = Math.floor(maxMatch / size);
  const prices = {
    ascii: { units: isSmall ? 1 : size, max: isSmall ? maxText.ascii : Math.min(maxText.ascii, worst) },
    unicode: { units: isSmall ? 4 : size, max: isSmall ? maxText.unicode : Math.min(maxText.unicode, worst) },
  };
  let read = 0;
  return {
    test(text, meter) {
      const isAscii = ascii.test(text);
      if (meter !== undefined) {
        const { units, max } = isAscii ? prices.ascii : prices.unicode;
        if (text.length > max) {
          throw new RangeError(`expected a text of at most ${max} characters for this pattern, got ${text.length}`);
        }
        meter.charge(text.length * units);
      }
      if (!isAscii) read += text.length;
      if (read > maxUnicodeRead) {
        // Compiled anew: the engine's own `reset` keeps everything.
        engine = RE2JS.compile(source);
        read = text.length;
      }
      return engine.test(text);
    },
  };
}

/** The compiled patterns of one pack, by source. */
export class PatternCache {
  /** The patterns that are written in rules, by source. */
  readonly literals: Map<string, Pattern> = new Map();
  readonly #computed = new Map<string, Pattern>();

  /** Compiles a pattern that is written in a rule and keeps it for good. */
  keep(source: string): void {
    if (!this.literals.has(source)) this.literals.set(source, compilePattern(source, true));
  }

  /** Returns a literal pattern, or compiles one that a rule computes from settings or from the action; the oldest of those is evicted. */
  get(source: string): Pattern {
    const kept = this.literals.get(source) ?? this.#computed.get(source);
    if (kept !== undefined) return kept;
    const pattern = compilePattern(source, false);
    if (this.#computed.size >= maxKept) this.#computed.delete(this.#computed.keys().next().value as string);
    this.#computed.set(source, pattern);
    return pattern;
  }
}

type Program = ReturnType<RE2JS["re2"]>["prog"];
type Instruction = ReturnType<Program["getInst"]>;

/** The engine's instruction codes. */
const op = { alt: 1, altMatch: 2, capture: 3, emptyWidth: 4, nop: 7, rune: 8, anyRune: 10, anyButNewline: 11 } as const;
const foldCase = 1;

/** Far below the 10,000 states at which the engine gives up its automaton and simulates, at many times the cost. */
const maxStates = 1_000;
/** Instructions visited while counting states; an automaton that needs more is not small. */
const maxWork = 2_000_000;

/**
 * Returns true where a pattern's deterministic automaton is known to be small: then the engine reads each character once,
 * whatever the text. False for patterns with `^`, `$` or `\b`, which the engine resolves again at every character.
 */
function isSmallAutomaton(program: Program): boolean {
  const classes = letterClasses(program);
  if (classes === undefined) return false;
  const closures: Closures = new Map();
  const start = reachAll(program, [program.start], closures);
  if (start === undefined) return false;
  const seen = new Set([start.join(",")]);
  // Where no instruction reads the letter, the search restarts in its initial state.
  const transitions = new Set([""]);
  const open = [start];
  let work = 0;
  for (let state = open.pop(); state !== undefined; state = open.pop()) {
    const readers = state.filter((pc) => isRune(program.getInst(pc)));
    for (const { letters, accepting } of classes) {
      work += letters * readers.length;
      const read = readers.filter((pc) => accepting.has(pc));
      if (work > maxWork) return false;
      const transition = read.join(",");
      if (transitions.has(transition)) continue;
      transitions.add(transition);
      const next = reachAll(program, [...read.map((pc) => program.getInst(pc).out), program.start], closures);
      if (next === undefined) return false;
      const key = next.join(",");
      if (seen.has(key)) continue;
      if (seen.size === maxStates) return false;
      seen.add(key);
      open.push(next);
    }
  }
  return true;
}

/** Letters that a pattern does not distinguish: how many of the samples, and the instructions that accept them. */
interface LetterClass {
  letters: number;
  readonly accepting: ReadonlySet<number>;
}

function letterClasses(program: Program): readonly LetterClass[] | undefined {
  const readers = program.inst.flatMap((each, pc) => (isRune(each) ? [pc] : []));
  const classes = new Map<string, LetterClass>();
  for (const letter of sampleLetters(program) ?? []) {
    const accepting = readers.filter((pc) => accepts(program.getInst(pc), letter));
    const key = accepting.join(",");
    const known = classes.get(key) ?? { letters: 0, accepting: new Set(accepting) };
    known.letters += 1;
    classes.set(key, known);
  }
  return classes.size === 0 ? undefined : Array.from(classes.values());
}

/** Results of `closure`, by the instruction it began with. */
type Closures = Map<number, readonly number[] | undefined>;

/** The instructions that `closure` reaches from any of these, in order. */
function reachAll(program: Program, from: readonly number[], closures: Closures): readonly number[] | undefined {
  const reached = new Set<number>();
  for (const pc of from) {
    if (!closures.has(pc)) closures.set(pc, closure(program, pc));
    const beyond = closures.get(pc);
    if (beyond === undefined) return undefined;
    for (const each of beyond) reached.add(each);
  }
  return Array.from(reached).sort((a, b) => a - b);
}

/** The instructions reachable without reading a character; undefined where that depends on the position in the text. */
function closure(program: Program, from: number): readonly number[] | undefined {
  const reached = new Set<number>();
  const open = [from];
  for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
    if (reached.has(pc)) continue;
    reached.add(pc);
    const each = program.getInst(pc);
    if (each.op === op.emptyWidth) return undefined;
    if (each.op === op.alt || each.op === op.altMatch) open.push(each.out, each.arg);
    if (each.op === op.nop || each.op === op.capture) open.push(each.out);
  }
  return Array.from(reached);
}

function isRune({ op: code }: Instruction): boolean {
  return code >= op.rune && code <= op.anyButNewline;
}

function accepts(each: Instruction, letter: number): boolean {
  if (each.op === op.anyRune) return true;
  return each.op === op.anyButNewline ? letter !== 0x0a : each.matchRune(letter);
}

/** One character of every class that the pattern distinguishes; undefined where case folding reaches beyond ASCII. */
function sampleLetters(program: Program): readonly number[] | undefined {
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

/** The case foldings of an ASCII character; `k` and `s` have one each outside ASCII (the Kelvin sign, the long s). */
function foldings(rune: number): readonly number[] {
  const text = String.fromCharCode(rune);
  const cases = [text.toLowerCase(), text.toUpperCase()].map((each) => each.charCodeAt(0));
  if (text.toLowerCase() === "k") cases.push(0x212a);
  if (text.toLowerCase() === "s") cases.push(0x17f);
  return cases;
}
