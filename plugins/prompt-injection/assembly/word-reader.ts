import { isWide, unmask } from "./fold";
import { takeWord } from "./phrase";

// Builds words from letters and reports each by its hash: a run of letters, or two neighbours of a script without
// blanks.

const offset: u32 = 0x811c9dc5;
const prime: u32 = 0x01000193;

let hash: u32 = offset;
/** Like `hash`, with every letter replaced by the Latin one that it resembles. */
let unmasked: u32 = offset;
let length: i32 = 0;
let hasLatin: bool = false;
let hasOther: bool = false;
let wideBefore: i32 = 0;

/** True inside a word. */
export function isInWord(): bool {
  return length > 0;
}

/** Takes a Latin letter or a digit, in lower case. */
export function feedLatin(code: i32): void {
  hash = (hash ^ <u32>code) * prime;
  if (hasOther) unmasked = (unmasked ^ <u32>code) * prime;
  hasLatin = true;
  length++;
}

/** Takes any letter. */
export function feedLetter(code: i32): void {
  if (code < 0x80) {
    feedLatin(code);
    return;
  }
  if (isWide(code)) {
    endLetters();
    if (wideBefore !== 0) takeWord((((offset ^ <u32>wideBefore) * prime) ^ <u32>code) * prime);
    wideBefore = code;
    return;
  }
  if (!hasOther) unmasked = hash;
  hash = (hash ^ <u32>code) * prime;
  unmasked = (unmasked ^ <u32>unmask(code)) * prime;
  hasOther = true;
  length++;
}

/** Ends the word, where one has begun. */
export function endWord(): void {
  wideBefore = 0;
  endLetters();
}

function endLetters(): void {
  if (length === 0) return;
  if (length > 1) takeWord(hasLatin && hasOther ? unmasked : hash);
  hash = offset;
  length = 0;
  hasLatin = false;
  hasOther = false;
}
