import { RE2JS } from "@bufbuild/re2";
import { isSmallAutomaton } from "./automaton.ts";

const longestPattern = 1_024;
/** Instructions of a compiled pattern. */
const largestProgram = 2_000;
/** Work units one match may take. */
const largestMatch = 400_000;
/** Characters of one text; the engine works out every character outside ASCII when it first meets it. */
const longestText = { ascii: 65_536, unicode: 16_384 } as const;
const mostKept = 256;
/** Characters outside ASCII after which the engine is made anew: it keeps an entry for each it ever met. */
const keepFor = 262_144;

/** A compiled pattern: linear in the text, and with a price known before it runs. */
export interface Pattern {
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
  if (source.length > longestPattern) {
    throw new RangeError(`expected a pattern of at most ${longestPattern} characters, got ${source.length}`);
  }
  let engine = RE2JS.compile(source);
  const program = engine.re2().prog;
  const size = program.numInst();
  if (size > largestProgram) {
    throw new RangeError(`expected a pattern of at most ${largestProgram} instructions, got ${size}`);
  }
  const small = analyse && isSmallAutomaton(program);
  let read = 0;
  return {
    price(text) {
      const ascii = isAscii(text);
      const most = ascii ? longestText.ascii : longestText.unicode;
      const longest = small ? most : Math.min(most, Math.floor(largestMatch / size));
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
    if (this.#others.size >= mostKept) this.#others.delete(this.#others.keys().next().value as string);
    this.#others.set(source, pattern);
    return pattern;
  }
}
