import { byteAt, hasWord, isDigit, lower } from "agent-governance-sdk/assembly";

const crossedOut: i32 = 5;
const words: StaticArray<string> = ["your", "example", "placeholder", "changeme", "dummy", "redacted"];

/** First letters of those words, in either case. */
const begins = new StaticArray<bool>(256);

for (let index = 0; index < words.length; index++) {
  const first = words[index].charCodeAt(0);
  begins[first] = true;
  begins[first - 0x20] = true;
}

/** Returns true if a credential's characters are struck out: five of `x`, `X`, `*` or `.` in a row. */
export function isCrossedOut(from: i32, to: i32): bool {
  let run = 0;
  for (let at = from; at < to; at++) {
    const byte = byteAt(at);
    const crosses = lower(byte) === 0x78 || byte === 0x2a || byte === 0x2e;
    if (!crosses) run = 0;
    else if (++run === crossedOut) return true;
  }
  return false;
}

/** Returns true if this is words that stand for a credential, such as `YOUR_API_KEY`, or is crossed out. */
export function isStandIn(from: i32, to: i32): bool {
  return isCrossedOut(from, to) || isPlainWords(from, to) || holdsWord(from, to);
}

/** No digit, and letters of one case alone: nothing random is, from sixteen characters on. */
function isPlainWords(from: i32, to: i32): bool {
  let cases = 0;
  for (let at = from; at < to; at++) {
    const byte = byteAt(at);
    if (isDigit(byte)) return false;
    if (byte >= 0x61 && byte <= 0x7a) cases |= 1;
    else if (byte >= 0x41 && byte <= 0x5a) cases |= 2;
  }
  return cases !== 3;
}

/** Returns true if a word of those that stand for something is in it, in any case. */
export function holdsWord(from: i32, to: i32): bool {
  for (let at = from; at < to; at++) {
    if (!unchecked(begins[byteAt(at)])) continue;
    for (let index = 0; index < words.length; index++) if (hasWord(at, to, words[index])) return true;
  }
  return false;
}
