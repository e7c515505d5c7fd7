import { addWord, setOf, Word } from "./lexicon";
import { countWord, hear, wordCount } from "./score";
import { Signal } from "./signal";

const longestPhrase: i32 = 5;
const longAgo: i32 = -1_000;
const lasts = new StaticArray<i32>(Word.count);
/** The words read last that begin phrases. */
const openPhrases = new StaticArray<u32>(longestPhrase);
let openCount: i32 = 0;
let lastLink: i32 = longAgo;

for (let bit = 0; bit < Word.count; bit++) lasts[bit] = longAgo;

/** The hash of the learned phrase's words so far; 0 without one. */
let learned: u32 = 0;
let isLearning: bool = true;

/** Takes the next word, by its hash: of a phrase to learn, later of a text. */
export function takeWord(hash: u32): void {
  if (isLearning) learnWord(hash);
  else hearWord(hash);
}

function learnWord(hash: u32): void {
  if (learned !== 0) addWord(learned, Word.beginning);
  learned = learned === 0 ? hash : joinHash(learned, hash);
}

/** The words since the last phrase are one, and about this. */
export function endPhrase(set: u32): void {
  addWord(learned, set);
  learned = 0;
}

/** All is learned; words are of texts from now on. */
export function startHearing(): void {
  isLearning = false;
}

/** The hash of a phrase, of that of its beginning and that of its next word. */
function joinHash(phrase: u32, word: u32): u32 {
  return rotl<u32>(phrase, 9) * 0x9e3779b1 + word;
}

function hearWord(hash: u32): void {
  countWord();
  let known: u32 = Word.none;
  let count = 0;
  // Unfinished phrases are never longer than the longest one.
  for (let index = 0; index < openCount; index++) {
    const phrase = joinHash(unchecked(openPhrases[index]), hash);
    const set = setOf(phrase);
    known |= set;
    if ((set & Word.beginning) !== 0) openPhrases[count++] = phrase;
  }
  const own = setOf(hash);
  if ((own & Word.beginning) !== 0 && count < longestPhrase) openPhrases[count++] = hash;
  openCount = count;
  // "Do not forget" asks for nothing to be forgotten.
  known |= near(Word.not, 1) ? own & ~Word.ignore : own;
  known &= ~Word.beginning;
  if (known !== Word.none) weigh(known);
}

/** A link or an address: somewhere to send things. */
export function hearLink(): void {
  lastLink = wordCount();
  weighSending();
}

function weigh(known: u32): void {
  const now = wordCount();
  for (let rest = known; rest !== 0; rest &= rest - 1) lasts[ctz(rest)] = now;
  if ((known & (Word.ignore | Word.prior | Word.every | Word.order | Word.rule)) !== 0) weighOverride();
  if ((known & (Word.model | Word.must)) !== 0 && near(Word.model, 6) && near(Word.must, 6)) hear(Signal.addressed, 20);
  if ((known & (Word.not | Word.tell | Word.user)) !== 0) weighSecrecy();
  if ((known & (Word.show | Word.prompt)) !== 0 && near(Word.show, 8) && near(Word.prompt, 8)) hear(Signal.reveal, 45);
  if ((known & (Word.send | Word.secret)) !== 0) weighSending();
  if ((known & (Word.call | Word.tool | Word.before | Word.must)) !== 0) weighToolUse();
  if ((known & Word.silent) !== 0 && (near(Word.send, 6) || near(Word.call, 6))) hear(Signal.secrecy, 30);
  weighPhrases(known);
}

function weighPhrases(known: u32): void {
  if ((known & Word.persona) !== 0) hear(Signal.persona, 30);
  if ((known & Word.free) !== 0) hear(Signal.unrestricted, 25);
  if ((known & Word.addressed) !== 0) hear(Signal.addressed, 40);
  if ((known & Word.newOrder) !== 0) hear(Signal.newOrder, 30);
  if ((known & Word.urgent) !== 0) hear(Signal.urgent, 20);
  if ((known & Word.ending) !== 0) hear(Signal.ending, 25);
}

/** Orders that came before are to be ignored, in whatever order a language says so. */
function weighOverride(): void {
  if (!near(Word.ignore, 10)) return;
  if (near(Word.order, 10)) hear(Signal.ignoring, overrideWeight());
  else if (near(Word.rule, 8) && near(Word.prior, 8)) hear(Signal.ignoring, 35);
}

function overrideWeight(): i32 {
  if (near(Word.prior, 10)) return 60;
  return follows(Word.ignore, Word.every, 2) && follows(Word.every, Word.order, 2) ? 40 : 20;
}

function weighSecrecy(): void {
  if (!near(Word.not, 8) || !near(Word.tell, 8) || !near(Word.user, 8)) return;
  const isSaid = follows(Word.not, Word.tell, 3) && follows(Word.tell, Word.user, 5);
  hear(Signal.secrecy, isSaid ? 45 : 20);
}

function weighSending(): void {
  if (!near(Word.send, 15) || !near(Word.secret, 15)) return;
  hear(Signal.exfiltration, wordCount() - lastLink <= 20 ? 30 : 15);
}

function weighToolUse(): void {
  if (!near(Word.call, 8) || !near(Word.tool, 8)) return;
  if (near(Word.before, 10) || near(Word.must, 8)) hear(Signal.toolUse, 20);
}

/** Returns true if a word of this bit was among the last. */
function near(bit: u32, words: i32): bool {
  return wordCount() - unchecked(lasts[ctz(bit)]) <= words;
}

/** Returns true if the last word of a bit came at most that many words before the last one of another. */
function follows(first: u32, then: u32, words: i32): bool {
  const distance = unchecked(lasts[ctz(then)]) - unchecked(lasts[ctz(first)]);
  return distance > 0 && distance <= words;
}
