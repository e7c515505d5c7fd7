import type { RE2JS } from "@bufbuild/re2";

/** A compiled pattern of the engine. */
export type Program = ReturnType<RE2JS["re2"]>["prog"];
type Instruction = ReturnType<Program["getInst"]>;

/** The engine's instruction codes. */
const op = {
  alt: 1,
  altMatch: 2,
  capture: 3,
  emptyWidth: 4,
  match: 6,
  nop: 7,
  rune: 8,
  anyRune: 10,
  anyButNewline: 11,
} as const;
const foldCase = 1;

/** Far below the 10,000 states at which the engine gives up its automaton and simulates, at many times the cost. */
const maxStates = 1_000;
/** Instructions visited while building; an automaton that needs more is not small. */
const maxWork = 2_000_000;
const asciiLetters = 128;

/** A deterministic automaton: one look-up for each character, whatever the text. */
export class Automaton {
  /** The next state by state and class of letters; 0 where the pattern has matched. */
  readonly #table: Uint16Array;
  readonly #width: number;
  readonly #startMatches: boolean;
  readonly #asciiClasses: Uint16Array;
  readonly #letters: LetterTable;

  /** `table` holds a row for each state, the first for none. */
  constructor(table: Uint16Array, startMatches: boolean, letters: LetterTable) {
    this.#width = letters.width;
    this.#table = table;
    this.#startMatches = startMatches;
    this.#letters = letters;
    this.#asciiClasses = Uint16Array.from({ length: asciiLetters }, (_, letter) => classOf(letter, letters));
  }

  get bytes(): number {
    return this.#table.byteLength;
  }

  /** Returns true where the pattern matches any part of the text. */
  matches(text: string): boolean {
    const table = this.#table;
    const width = this.#width;
    const ascii = this.#asciiClasses;
    if (this.#startMatches) return true;
    let state = 1;
    for (let at = 0; at < text.length; at++) {
      let letter = text.charCodeAt(at);
      if (letter >= asciiLetters) {
        letter = text.codePointAt(at) as number;
        if (letter > 0xffff) at++;
        state = table[state * width + classOf(letter, this.#letters)] as number;
      } else state = table[state * width + (ascii[letter] as number)] as number;
      if (state === 0) return true;
    }
    return false;
  }
}

/**
 * Builds the automaton of a pattern; undefined where it is not known to be small, as for patterns with `^`, `$` or `\b`,
 * which depend on the position in the text.
 */
export function buildAutomaton(program: Program): Automaton | undefined {
  const letters = letterTable(program);
  if (letters === undefined) return undefined;
  const closures: Closures = new Map();
  const start = reachAll(program, [program.start], closures);
  if (start === undefined) return undefined;
  const states = new StateTable(program, start);
  const sets = new ReaderSets(program.numInst());
  // The next state by set of readers. Where no instruction reads the letter, the search restarts in its initial state.
  const targets = [states.numberOf(start)];
  let work = 0;
  for (let state = states.next(); state !== undefined; state = states.next()) {
    const readers = state.instructions.filter((pc) => isRune(program.getInst(pc)));
    work += letters.starts.length * readers.length;
    if (work > maxWork) return undefined;
    for (const set of sets.byClass(readers, letters)) {
      let target = targets[set];
      if (target === undefined) {
        const next = reachAll(
          program,
          [...sets.members(set).map((pc) => program.getInst(pc).out), program.start],
          closures,
        );
        target = next && states.numberOf(next);
        if (target === undefined) return undefined;
        targets[set] = target;
      }
      state.row.push(target);
    }
  }
  return states.automaton(letters);
}

/** The sets of instructions that read a letter together, by number; 0 is the empty one. Each is another one and its last member. */
class ReaderSets {
  readonly #size: number;
  readonly #without = [0];
  readonly #last = [0];
  readonly #numbers = new Map<number, number>();

  /** `size` is the number of instructions. */
  constructor(size: number) {
    this.#size = size;
  }

  members(set: number): readonly number[] {
    const members: number[] = [];
    for (let each = set; each !== 0; each = this.#without[each] as number) members.push(this.#last[each] as number);
    return members;
  }

  /** The set that accepts the letters of each class, among `readers`. */
  byClass(readers: readonly number[], { width, accepted }: LetterTable): readonly number[] {
    const found = new Array<number>(width).fill(0);
    for (const pc of readers) {
      for (const column of accepted.get(pc) ?? []) found[column] = this.#with(found[column] as number, pc);
    }
    return found;
  }

  #with(set: number, pc: number): number {
    const key = set * this.#size + pc;
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.#without.push(set) - 1;
    this.#last.push(pc);
    this.#numbers.set(key, number);
    return number;
  }
}

/** The states found so far; each is a set of instructions. */
class StateTable {
  readonly #program: Program;
  readonly #start: readonly number[];
  readonly #numbers = new Map<string, number>();
  readonly #open: { readonly instructions: readonly number[]; readonly row: number[] }[] = [];
  readonly #rows: number[][] = [];
  readonly #matching = new Set<number>();

  constructor(program: Program, start: readonly number[]) {
    this.#program = program;
    this.#start = start;
  }

  /** The number of a state, counted from 1; undefined where there would be too many. */
  numberOf(instructions: readonly number[]): number | undefined {
    const key = instructions.join(",");
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    if (this.#numbers.size === maxStates) return undefined;
    const number = this.#numbers.size + 1;
    this.#numbers.set(key, number);
    if (this.#isMatching(instructions)) this.#matching.add(number);
    const row: number[] = [];
    this.#rows.push(row);
    this.#open.push({ instructions, row });
    return number;
  }

  /** A state whose row is still to be filled. */
  next(): { readonly instructions: readonly number[]; readonly row: number[] } | undefined {
    return this.#open.pop();
  }

  automaton(letters: LetterTable): Automaton {
    const { width } = letters;
    const table = new Uint16Array((this.#rows.length + 1) * width);
    let at = width;
    for (const row of this.#rows) {
      for (const target of row) table[at++] = this.#matching.has(target) ? 0 : target;
    }
    return new Automaton(table, this.#isMatching(this.#start), letters);
  }

  #isMatching(instructions: readonly number[]): boolean {
    return instructions.some((pc) => this.#program.getInst(pc).op === op.match);
  }
}

/** The classes of all letters: those that a pattern does not distinguish. Those from one start to the next are of one class. */
interface LetterTable {
  /** The number of classes. */
  readonly width: number;
  /** The classes that an instruction accepts. */
  readonly accepted: ReadonlyMap<number, readonly number[]>;
  readonly starts: readonly number[];
  /** The index of the class, by start. */
  readonly classByStart: readonly number[];
}

function letterTable(program: Program): LetterTable | undefined {
  const starts = sampleLetters(program);
  if (starts === undefined || starts.length === 0) return undefined;
  const readers = distinctReaders(program);
  const indexes = new Map<string, number>();
  const classByStart = starts.map((letter) => {
    const accepting = readers.filter(({ instruction }) => accepts(instruction, letter));
    const key = accepting.map(({ number }) => number).join(",");
    const known = indexes.get(key);
    if (known !== undefined) return known;
    const index = indexes.size;
    indexes.set(key, index);
    for (const { classes } of accepting) classes.push(index);
    return index;
  });
  const accepted = new Map(readers.flatMap(({ places, classes }) => places.map((pc) => [pc, classes] as const)));
  return { width: indexes.size, accepted, starts, classByStart };
}

/** Instructions that accept the same letters, and the classes of these. */
interface Reader {
  readonly number: number;
  readonly instruction: Instruction;
  readonly places: number[];
  readonly classes: number[];
}

/** The instructions that read a letter; those that are written alike count once. */
function distinctReaders(program: Program): readonly Reader[] {
  const found = new Map<string, Reader>();
  for (const [pc, instruction] of program.inst.entries()) {
    if (!isRune(instruction)) continue;
    const key = `${instruction.op} ${instruction.arg} ${instruction.runes.join()}`;
    const known = found.get(key);
    if (known === undefined) found.set(key, { number: found.size, instruction, places: [pc], classes: [] });
    else known.places.push(pc);
  }
  return Array.from(found.values());
}

function classOf(letter: number, { starts, classByStart }: LetterTable): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((starts[middle] as number) <= letter) low = middle;
    else high = middle - 1;
  }
  return classByStart[low] as number;
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

/**
 * One character of every class that the pattern distinguishes, in order: the class changes nowhere else. Undefined where
 * case folding reaches beyond ASCII.
 */
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
  return Array.from(starts).sort((a, b) => a - b);
}

/** The case foldings of an ASCII character; `k` and `s` have one each outside ASCII (the Kelvin sign, the long s). */
function foldings(rune: number): readonly number[] {
  const text = String.fromCharCode(rune);
  const cases = [text.toLowerCase(), text.toUpperCase()].map((each) => each.charCodeAt(0));
  if (text.toLowerCase() === "k") cases.push(0x212a);
  if (text.toLowerCase() === "s") cases.push(0x17f);
  return cases;
}
