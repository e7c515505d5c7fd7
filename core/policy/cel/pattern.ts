import { RE2JS } from "@bufbuild/re2";

const maxPattern = 1_024;
/** Instructions of a compiled pattern. */
const maxProgram = 2_000;
/** Work units one match may take. */
const maxMatch = 400_000;
/** Characters of one text; the engine works out every character outside ASCII when it first meets it. */
const maxText = { ascii: 65_536, unicode: 16_384 } as const;
const maxKept = 256;
/** Characters outside ASCII after which the engine is made anew: it keeps an entry for each it ever met. */
const keepFor = 262_144;

/** A compiled pattern: linear in the text, and with a price known before it runs. */
interface Pattern {
  /**
   * Work units for matching `text`: a few a character where the automaton is known to be small, otherwise one for each
   * character and instruction. Throws RangeError where that is more than one match may take.
   */
  price(text: string): number;
  test(text: string): boolean;
}

/**
 * Compiles a pattern of a pack on RE2: no lookaround, no backreferences, never exponential.
 * `analyse` finds out whether its automaton is small, which may take some milliseconds.
 * Throws RangeError or the engine's own error, whose texts name the construct.
 */
export function compilePattern(source: string, analyse: boolean): Pattern {
  if (source.length > maxPattern) {
    throw new RangeError(`expected a pattern of at most ${maxPattern} characters, got ${source.length}`);
  }
  let engine = RE2JS.compile(source);
  const program = engine.re2().prog;
  const size = program.numInst();
  if (size > maxProgram) {
    throw new RangeError(`expected a pattern of at most ${maxProgram} instructions, got ${size}`);
  }
  const small = analyse && isSmallAutomaton(program);
  let read = 0;
  return {
    price(text) {
      const ascii = isAscii(text);
      const most = ascii ? maxText.ascii : maxText.unicode;
      const longest = small ? most : Math.min(most, Math.floor(maxMatch / size));
      if (text.length > longest) {
        throw new RangeError(`expected a text of at most ${longest} characters for this pattern, got ${text.length}`);
      }
      return text.length * (small ? (ascii ? 1 : 4) : size);
    },
    test(text) {
      if (!isAscii(text)) read += text.length;
      if (read > keepFor) {
        // Compiled anew: the engine's own `reset` keeps everything.
        engine = RE2JS.compile(source);
        read = text.length;
      }
      return engine.test(text);
    },
  };
}

function isAscii(text: string): boolean {
  return /^[\p{ASCII}]*$/u.test(text);
}

/** The compiled patterns of one pack, by source. */
export class PatternCache {
  readonly #literals = new Map<string, Pattern>();
  readonly #others = new Map<string, Pattern>();

  /** Compiles a pattern that stands in a rule and keeps it. */
  keep(source: string): void {
    if (!this.#literals.has(source)) this.#literals.set(source, compilePattern(source, true));
  }

  /** Whether the pattern stands in a rule of the pack. */
  isLiteral(source: string): boolean {
    return this.#literals.has(source);
  }

  /** A kept pattern, or one that a rule made of settings or of the action: the oldest makes room for the next. */
  get(source: string): Pattern {
    const kept = this.#literals.get(source) ?? this.#others.get(source);
    if (kept !== undefined) return kept;
    const pattern = compilePattern(source, false);
    if (this.#others.size >= maxKept) this.#others.delete(this.#others.keys().next().value as string);
    this.#others.set(source, pattern);
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
/** Instructions looked at while counting; what is not counted by then is not small. */
const maxWork = 2_000_000;

/**
 * Whether a pattern's deterministic automaton is known to be small: then the engine reads each character once,
 * whatever the text. False for patterns with `^`, `$` or `\b`, which the engine resolves anew at every character.
 */
function isSmallAutomaton(program: Program): boolean {
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
      if (next === undefined || work > maxWork) return false;
      const key = next.join(",");
      if (seen.has(key)) continue;
      if (seen.size === maxStates) return false;
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
