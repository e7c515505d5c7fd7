import type { RequestContent } from "./request-content.ts";

type CountTokens = (text: string, options: { readonly disallowedSpecial: Set<string> }) => number;

/** UTF-16 code units; so many are counted one by one, of more only some. */
const maxCounted = 32_768;
/** Merging costs the square of a run of letters, and a run may be a whole text: none is longer than this. */
const pieceLength = 64;
/** What asking about a text costs beside its length, in code units. */
const pieceCost = 32;
/** No text that is not counted whole has fewer tokens than one for so many code units. */
const maxPerToken = 8;
/** What looks like a control token is text like any other. */
const plain = { disallowedSpecial: new Set<string>() };

let loading: Promise<Tokenizer> | undefined;

/**
 * Counts tokens by the `o200k_base` encoding. Models of other encodings take some more or fewer: what a provider counts
 * goes before this.
 */
export class Tokenizer {
  readonly #countTokens: CountTokens;

  private constructor(countTokens: CountTokens) {
    this.#countTokens = countTokens;
  }

  /** One for all: the tables take some 70 MB and a tenth of a second. */
  static load(): Promise<Tokenizer> {
    loading ??= import("gpt-tokenizer/encoding/o200k_base").then(({ countTokens, setMergeCacheSize }) => {
      // It would hold a hundred thousand pieces of what clients wrote.
      setMergeCacheSize(0);
      return new Tokenizer(countTokens);
    });
    return loading;
  }

  countText(text: string): number {
    return this.#count([text]);
  }

  /** What a request takes as input. */
  countRequest({ texts, flat }: RequestContent): number {
    return this.#count(texts) + flat;
  }

  /**
   * In time that grows with the length up to 32,768 code units, and hardly beyond: of more, pieces of 64 that lie
   * evenly between the others stand for all.
   */
  #count(texts: readonly string[]): number {
    const length = texts.reduce((sum, text) => sum + text.length, 0);
    const step = Math.ceil((length + texts.length * pieceCost) / maxCounted);
    let tokens = 0;
    let counted = 0;
    let index = 0;
    for (const piece of piecesOf(texts)) {
      if (index++ % step !== 0) continue;
      tokens += this.#countTokens(piece, plain);
      counted += piece.length;
    }
    return step <= 1 ? tokens : Math.ceil(Math.max((tokens * length) / counted, length / maxPerToken));
  }
}

function* piecesOf(texts: readonly string[]): Generator<string> {
  for (const text of texts) {
    for (let start = 0; start < text.length; ) {
      const piece = text.slice(start, start + cutOf(text.slice(start, start + pieceLength)));
      yield piece;
      start += piece.length;
    }
  }
}

/** Where a piece ends: before its last word, where it has several, for no token spans what is before a word's space and the word. */
function cutOf(piece: string): number {
  if (piece.length < pieceLength) return piece.length;
  for (let at = piece.lastIndexOf(" "); at > 0; at = piece.lastIndexOf(" ", at - 1)) {
    if (/^\S \p{L}/u.test(piece.slice(at - 1, at + 2))) return at;
  }
  return piece.length;
}
