import { RE2JS } from "@bufbuild/re2";
import { buildAutomaton } from "./automaton.ts";
import type { Meter } from "./meter.ts";

const maxPattern = 1_024;
/** Instructions of a compiled pattern. */
const maxProgram = 2_000;
/** Work units one match may take. */
const maxMatch = 400_000;
/** Characters of one text; the engine computes a transition when it first reads a character outside ASCII. */
const maxText = { ascii: 65_536, unicode: 16_384 } as const;
const maxKept = 256;
/** Bytes of the automata of one pack; patterns beyond are matched by the engine, at the same price. */
const maxTables = 1_048_576;
/** Characters outside ASCII after which the engine is created anew: it keeps an entry for each that it ever read. */
const maxUnicodeRead = 262_144;

/** A compiled pattern: linear in the text, at a price known before it runs. */
export interface Pattern {
  /** Bytes of its automaton; 0 where the engine matches. */
  readonly bytes: number;
  /**
   * Matches `text`. Charges `meter` before: a few units a character where the automaton is known to be small, otherwise
   * one for each character and instruction. Throws RangeError where that is more than one match may spend. Without a
   * meter, as for settings, nothing is limited.
   */
  test(text: string, meter?: Meter): boolean;
}

/**
 * Compiles a pattern of a pack: no lookaround, no backreferences, never exponential. The automaton of an `isLiteral`
 * pattern is built where it is small, which may take some milliseconds, and kept where `maxBytes` suffice.
 * Throws RangeError, or the engine's own error, whose message names the construct.
 */
export function compilePattern(source: string, isLiteral: boolean, maxBytes = maxTables): Pattern {
  if (source.length > maxPattern) {
    throw new RangeError(`expected a pattern of at most ${maxPattern} characters, got ${source.length}`);
  }
  const engine = RE2JS.compile(source);
  const program = engine.re2().prog;
  const size = program.numInst();
  if (size > maxProgram) {
    throw new RangeError(`expected a pattern of at most ${maxProgram} instructions, got ${size}`);
  }
  const automaton = isLiteral ? buildAutomaton(program) : undefined;
  const prices = automaton === undefined ? worstPrices(size) : smallPrices;
  const kept = automaton !== undefined && automaton.bytes <= maxBytes ? automaton : undefined;
  const matchesByEngine = engineMatch(engine, source);
  return {
    bytes: kept?.bytes ?? 0,
    test(text, meter) {
      // A loop is faster than a regular expression for the short texts of most arguments.
      let ascii = true;
      for (let at = 0; ascii && at < text.length; at++) ascii = text.charCodeAt(at) <= 0x7f;
      if (meter !== undefined) {
        const { units, max } = ascii ? prices.ascii : prices.unicode;
        if (text.length > max) {
          throw new RangeError(`expected a text of at most ${max} characters for this pattern, got ${text.length}`);
        }
        meter.charge(text.length * units);
      }
      return kept === undefined ? matchesByEngine(text, ascii) : kept.matches(text);
    },
  };
}

/** The units for each character, and the longest text. */
interface Prices {
  readonly ascii: { readonly units: number; readonly max: number };
  readonly unicode: { readonly units: number; readonly max: number };
}

const smallPrices: Prices = {
  ascii: { units: 1, max: maxText.ascii },
  unicode: { units: 4, max: maxText.unicode },
};

function worstPrices(size: number): Prices {
  const worst = Math.floor(maxMatch / size);
  return {
    ascii: { units: size, max: Math.min(maxText.ascii, worst) },
    unicode: { units: size, max: Math.min(maxText.unicode, worst) },
  };
}

function engineMatch(compiled: RE2JS, source: string): (text: string, ascii: boolean) => boolean {
  let engine = compiled;
  let read = 0;
  return (text, ascii) => {
    if (!ascii) read += text.length;
    if (read > maxUnicodeRead) {
      // Compiled anew: the engine's own `reset` keeps everything.
      engine = RE2JS.compile(source);
      read = text.length;
    }
    return engine.test(text);
  };
}

/** The compiled patterns of one pack, by source. */
export class PatternCache {
  /** The patterns that are written in rules, by source. */
  readonly literals: Map<string, Pattern> = new Map();
  readonly #computed = new Map<string, Pattern>();
  #bytesLeft = maxTables;

  /** Compiles a pattern that is written in a rule and keeps it for good. */
  keep(source: string): void {
    if (this.literals.has(source)) return;
    const pattern = compilePattern(source, true, this.#bytesLeft);
    this.#bytesLeft -= pattern.bytes;
    this.literals.set(source, pattern);
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
