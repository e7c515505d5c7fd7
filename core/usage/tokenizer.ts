import { createRequire } from "node:module";
import type { RequestContent } from "./request-content.ts";

type Encoding = typeof import("gpt-tokenizer/encoding/o200k_base");

type CountTokens = (text: string, options: { readonly disallowedSpecial: Set<string> }) => number;

/** UTF-16 code units that are encoded; longer input is sampled. */
const maxEncoded = 32_768;
/** Length of the pieces that are encoded: merging costs the square of a run of letters, which may be a whole text. */
const pieceLength = 64;
/** Fixed cost of encoding a text, in code units. */
const pieceCost = 32;
/** Code units per token at most, for sampled input. */
const maxUnitsPerToken = 8;
/** The file that the build copies from the package, whose other encodings are not shipped. */
const encodingFile = "../../vendor/gpt-tokenizer/cjs/encoding/o200k_base.js";
/** Text that looks like a control token is encoded like any other. */
const encodeOptions = { disallowedSpecial: new Set<string>() };

let loading: Promise<Tokenizer> | undefined;

/**
 * Counts tokens by the `o200k_base` encoding. Models of other encodings use some more or fewer; the count of a provider
 * takes precedence.
 */
export class Tokenizer {
  readonly #countTokens: CountTokens;

  private constructor(countTokens: CountTokens) {
    this.#countTokens = countTokens;
  }

  /** Loads the one tokenizer of this process: its tables need some 70 MB and a tenth of a second. */
  static load(): Promise<Tokenizer> {
    loading ??= Promise.resolve(createRequire(import.meta.url)(encodingFile) as Encoding).then(
      ({ countTokens, setMergeCacheSize }) => {
        // The cache would keep up to 100,000 pieces of client input.
        setMergeCacheSize(0);
        return new Tokenizer(countTokens);
      },
    );
    return loading;
  }

  countText(text: string): number {
    return this.#count([text]);
  }

  /** Counts the input tokens of a request. */
  countRequest({ texts, flatTokens }: RequestContent): number {
    return this.#count(texts) + flatTokens;
  }

  /** Takes time linear in the length up to 32,768 code units, and hardly more beyond: longer input is sampled evenly. */
  #count(texts: readonly string[]): number {
    const length = texts.reduce((sum, text) => sum + text.length, 0);
    const step = Math.ceil((length + texts.length * pieceCost) / maxEncoded);
    let tokens = 0;
    let encodedLength = 0;
    let index = 0;
    for (const piece of piecesOf(texts)) {
      if (index++ % step !== 0) continue;
      tokens += this.#countTokens(piece, encodeOptions);
      encodedLength += piece.length;
    }
    return step <= 1 ? tokens : Math.ceil(Math.max((tokens * length) / encodedLength, length / maxUnitsPerToken));
  }
}

function* piecesOf(texts: readonly string[]): Generator<string> {
  for (const text of texts) {
    for (let start = 0; start < text.length; ) {
      const piece = text.slice(start, start + findCut(text.slice(start, start + pieceLength)));
      yield piece;
      start += piece.length;
    }
  }
}

/** Returns the length up to the last word of a piece, so that no token is cut: none spans the space before a word. */
function findCut(piece: string): number {
  if (piece.length < pieceLength) return piece.length;
  for (let at = piece.lastIndexOf(" "); at > 0; at = piece.lastIndexOf(" ", at - 1)) {
    if (/^\S \p{L}/u.test(piece.slice(at - 1, at + 2))) return at;
  }
  return piece.length;
}
