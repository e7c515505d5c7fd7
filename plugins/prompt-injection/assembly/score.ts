import { Signal } from "./signal";

/** The number of words over which a signal still adds to the next one. */
const reach: i32 = 300;
const longAgo: i32 = -1_000_000;

const weights = new StaticArray<i32>(Signal.count);
const places = new StaticArray<i32>(Signal.count);
const texts = new StaticArray<i32>(Signal.count);
let peak: i32 = 0;
let peakSignals: i32 = 0;
let textNow: i32 = 0;
let heardInText: bool = false;

/** Words read so far, over all texts. */
let wordNow: i32 = 0;

for (let signal = 0; signal < Signal.count; signal++) places[signal] = longAgo;

/** Starts the text of this number; a phrase does not continue from one to the next. */
export function enterText(number: i32): void {
  textNow = number;
  heardInText = false;
  wordNow += 30;
}

export function countWord(): i32 {
  return ++wordNow;
}

export function wordCount(): i32 {
  return wordNow;
}

/** Records a signal. Signals close together add up, each once, by its greatest weight. */
export function hear(signal: i32, weight: i32): void {
  if (wordNow - places[signal] > reach || weight > weights[signal]) {
    weights[signal] = weight;
    texts[signal] = textNow;
    heardInText = true;
  }
  places[signal] = wordNow;
  let sum = 0;
  let signals = 0;
  for (let each = 0; each < Signal.count; each++) {
    if (wordNow - places[each] > reach) continue;
    sum += weights[each];
    signals |= 1 << each;
  }
  if (sum <= peak) return;
  peak = sum;
  peakSignals = signals;
}

/** Returns true if the signal was found in this text. */
export function isHeard(): bool {
  return heardInText;
}

/** The greatest sum so far. */
export function score(): i32 {
  return peak;
}

/** Returns true if a signal is part of that sum. */
export function counts(signal: i32): bool {
  return (peakSignals & (1 << signal)) !== 0;
}

/** The number of the text where a signal was found. */
export function textOf(signal: i32): i32 {
  return texts[signal];
}
