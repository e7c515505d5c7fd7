import { foldByte } from "./fold";
import { words } from "./lexicon";
import { endPhrase, startHearing } from "./phrase";
import { endWord, feedLetter } from "./word-reader";

/** Puts the lexicon into its table, read as texts are read. Once, when the module is loaded. */
export function learn(): void {
  for (let bit = 0; bit < words.length; bit++) {
    const list = words[bit];
    for (let at = 0; at <= list.length; at++) {
      const code = at < list.length ? list.charCodeAt(at) : 0x7c;
      const letter = code < 0x80 ? foldByte(<u8>code) : code;
      if (letter !== 0) feedLetter(letter);
      else endWord();
      if (code === 0x7c) endPhrase(1 << bit);
    }
  }
  startHearing();
}
