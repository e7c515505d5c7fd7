import { found } from "./found";
import { Kind } from "./kind";
import { Bits, bitsAt, byteAt, floorNow, hasWord, isDigit, isWordAt, spanEnd } from "./span";

const longestLocal: i32 = 64;
const longestDomain: i32 = 253;

/** Finds an address around an `@` or `%40` of `width` bytes. Returns where to continue. */
export function emailAt(at: i32, width: i32): i32 {
  const from = localStart(at);
  if (from === at || isRepository(from, at)) return at + width;
  const to = domainEnd(at + width);
  if (to === 0) return at + width;
  return found(Kind.email, from, to);
}

/** `git@host` names a service, not a person. */
function isRepository(from: i32, at: i32): bool {
  return at - from === 3 && hasWord(from, "git");
}

function localStart(at: i32): i32 {
  const least = max(floorNow(), at - longestLocal);
  let from = at;
  while (from > least) {
    const step = localBefore(from);
    if (step === 0 || from - step < least) break;
    from -= step;
  }
  while (from < at && (byteAt(from) === 0x2e || byteAt(from) === 0x2d)) from++;
  return from;
}

/** Bytes of the character before, where it may be part of a name. */
function localBefore(at: i32): i32 {
  const byte = byteAt(at - 1);
  if (isWordAt(at - 1) || byte === 0x2e || byte === 0x5f || byte === 0x2b || byte === 0x2d) return 1;
  return isLetterPair(byteAt(at - 2), byte) ? 2 : 0;
}

/** Letters of two bytes: Latin with marks, Greek, Cyrillic, Hebrew, Arabic. */
function isLetterPair(lead: u8, trail: u8): bool {
  return lead >= 0xc3 && lead <= 0xdf && (trail & 0xc0) === 0x80;
}

/** Returns the end of a host name that begins here, or 0: two labels or more, the last of letters. */
function domainEnd(from: i32): i32 {
  let to = 0;
  let numbers = 0;
  let start = from;
  for (let labels = 1; start - from < longestDomain; labels++) {
    const end = labelEnd(start);
    if (end === start) break;
    if (isNumber(start, end)) numbers++;
    if (labels > 1 && numbers < 2 && isTopLevel(start, end)) to = end;
    if (byteAt(end) !== 0x2e) break;
    start = end + 1;
  }
  return to;
}

function labelEnd(from: i32): i32 {
  let at = from;
  while (at < spanEnd() && at - from < 63) {
    if (isWordAt(at) || (byteAt(at) === 0x2d && at > from)) at++;
    else if (isLetterPair(byteAt(at), byteAt(at + 1))) at += 2;
    else break;
  }
  while (at > from && byteAt(at - 1) === 0x2d) at--;
  return at;
}

function isNumber(from: i32, to: i32): bool {
  for (let at = from; at < to; at++) if (!isDigit(byteAt(at))) return false;
  return true;
}

/** Letters alone, or punycode; not what pictures end in, which are named like `icon@2x.png`. */
function isTopLevel(from: i32, to: i32): bool {
  if (to - from < 2) return false;
  if (hasWord(from, "xn--")) return true;
  for (let at = from; at < to; at++) if (byteAt(at) < 0x80 && (bitsAt(at) & Bits.letter) === 0) return false;
  return !isPicture(from, to - from);
}

function isPicture(from: i32, length: i32): bool {
  if (length === 3) return hasWord(from, "png") || hasWord(from, "jpg") || hasWord(from, "gif") || hasWord(from, "svg");
  return length === 4 && (hasWord(from, "jpeg") || hasWord(from, "webp"));
}
