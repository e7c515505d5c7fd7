import {
  byteAt,
  hasPrefix,
  hasWord,
  isAlphanumeric,
  isUpperOrDigit,
  isWordByte,
  lower,
} from "agent-governance-sdk/assembly";
import { longestValue, looksRandom } from "./random-value";

/** The kinds of finds; numbers are bits of a set. */
export namespace Kind {
  export const none: i32 = 0;
  export const aws: i32 = 1;
  export const github: i32 = 2;
  export const slack: i32 = 4;
  export const privateKey: i32 = 8;
  export const jwt: i32 = 16;
  export const keyword: i32 = 32;
  export const all: i32 = 63;
}

const longestName: i32 = 32;

/** The position that the detector has read to; always past its start, so that a text is read once. */
let next: i32 = 0;

/** Up to here a value was judged: it holds shapes, but no keyword that would be judged again. */
let judgedTo: i32 = 0;

/** Behind an escape that ends in a letter, where a word may begin all the same: `\nAKIA…` in JSON, however deep. */
let behindEscape: i32 = -1;

/** Bits of a byte: a letter or digit; what a credential, a keyword or an escape may begin with. */
const classes = new StaticArray<u8>(256);
const alphanumeric: u8 = 1;
const beginning: u8 = 2;

for (let byte = 0; byte < 256; byte++) {
  const begins = "AgxhepPsStTa-\\".includes(String.fromCharCode(byte));
  classes[byte] = (isAlphanumeric(<u8>byte) ? alphanumeric : 0) | (begins ? beginning : 0);
}

/** The kinds of credentials in a span, of those asked for, as a set. Linear in the span. */
export function detect(from: i32, to: i32, wanted: i32): i32 {
  let found: i32 = Kind.none;
  let before: u8 = 0;
  judgedTo = from;
  behindEscape = -1;
  for (let at = from; at < to; ) {
    const byte = byteAt(at);
    const bits = unchecked(classes[byte]);
    if ((bits & beginning) === 0 || ((before & bits & alphanumeric) !== 0 && at !== behindEscape)) {
      before = bits;
      at++;
      continue;
    }
    next = at + 1;
    found |= kindAt(at, from, to) & wanted;
    at = next;
    before = classes[byteAt(at - 1)];
  }
  return found;
}

/** Detects the credential that begins here. No letter or digit precedes a letter. */
function kindAt(at: i32, from: i32, to: i32): i32 {
  const byte = byteAt(at);
  if (byte === 0x5c) {
    const escaped = byteAt(at + 1);
    if (escaped === 0x6e || escaped === 0x72 || escaped === 0x74) behindEscape = at + 2;
    return Kind.none;
  }
  if (byte === 0x2d) return isPrivateKey(at, to) ? Kind.privateKey : Kind.none;
  const isInside = at > from && at !== behindEscape && isWordByte(byteAt(at - 1));
  const shape = isInside ? Kind.none : shapeAt(at, to);
  return shape === Kind.none && at >= judgedTo ? keywordAt(at, to) : shape;
}

function shapeAt(at: i32, to: i32): i32 {
  switch (byteAt(at)) {
    case 0x41: // A
      return isAws(at, to) ? Kind.aws : Kind.none;
    case 0x67: // g
      return isGithub(at, to) ? Kind.github : Kind.none;
    case 0x78: // x
      return isSlack(at, to) ? Kind.slack : Kind.none;
    case 0x68: // h
      return isSlackHook(at, to) ? Kind.slack : Kind.none;
    case 0x65: // e
      return isJwt(at, to) ? Kind.jwt : Kind.none;
    default:
      return Kind.none;
  }
}

/** The number of letters and digits that follow; with `joined`, `_` and `-` too. */
function runOf(at: i32, to: i32, joined: bool): i32 {
  let end = at;
  while (end < to && end - at < 4_096 && (joined ? isWordByte(byteAt(end)) : isAlphanumeric(byteAt(end)))) end++;
  return end - at;
}

function isAws(at: i32, to: i32): bool {
  if (!hasPrefix(at, to, "AKIA") && !hasPrefix(at, to, "ASIA")) return false;
  for (let index = 4; index < 20; index++) if (at + index >= to || !isUpperOrDigit(byteAt(at + index))) return false;
  return at + 20 >= to || !isAlphanumeric(byteAt(at + 20));
}

function isGithub(at: i32, to: i32): bool {
  if (hasPrefix(at, to, "github_pat_")) return skip(at, runOf(at + 11, to, true), 60);
  if (!hasPrefix(at, to, "gh") || byteAt(at + 3) !== 0x5f) return false;
  const owner = byteAt(at + 2);
  const known = owner === 0x70 || owner === 0x6f || owner === 0x75 || owner === 0x73 || owner === 0x72;
  return known && skip(at, runOf(at + 4, to, false), 36);
}

function isSlack(at: i32, to: i32): bool {
  if (hasPrefix(at, to, "xapp-")) return skip(at, runOf(at + 5, to, true), 20);
  if (!hasPrefix(at, to, "xox") || byteAt(at + 4) !== 0x2d) return false;
  return skip(at, runOf(at + 5, to, true), 20);
}

function isSlackHook(at: i32, to: i32): bool {
  return hasPrefix(at, to, "hooks.slack.com/services/T") && runOf(at + 25, to, true) >= 8;
}

/** Consumes a run and returns true if it was long enough. */
function skip(at: i32, run: i32, least: i32): bool {
  next = max(next, at + run);
  return run >= least;
}

function isPrivateKey(at: i32, to: i32): bool {
  if (!hasPrefix(at, to, "-----BEGIN ")) return false;
  for (let place = at + 11; place < at + 48; place++) if (hasPrefix(place, to, "PRIVATE KEY")) return true;
  return false;
}

/** Three parts of base64url, the first two of which begin like an object. */
function isJwt(at: i32, to: i32): bool {
  if (!hasPrefix(at, to, "eyJ")) return false;
  const head = runOf(at, to, true);
  next = max(next, at + head);
  const second = at + head + 1;
  if (head < 12 || byteAt(second - 1) !== 0x2e || !hasPrefix(second, to, "eyJ")) return false;
  const body = runOf(second, to, true);
  const third = second + body + 1;
  return body >= 12 && byteAt(third - 1) === 0x2e && runOf(third, to, true) >= 16;
}

/** `password = …`, `api_key: "…"`: a value behind such a name that looks random. */
function keywordAt(at: i32, to: i32): i32 {
  const length = keywordLength(at, to);
  if (length === 0) return Kind.none;
  next = at + length;
  let place = next;
  while (place < to && place - next < longestName && isWordByte(byteAt(place))) place++;
  place = skipMarks(place, to);
  const sign = byteAt(place);
  if (sign !== 0x3d && sign !== 0x3a) return Kind.none;
  const value = skipMarks(place + 1, to);
  const valueEnd = endOfValue(value, to);
  judgedTo = valueEnd;
  return looksRandom(value, valueEnd) ? Kind.keyword : Kind.none;
}

/** Returns true if the name of a member marks its value as secret. */
export function isSecretName(from: i32, to: i32): bool {
  for (let at = from; at < to && at - from < 128; at++) if (keywordLength(at, to) > 0) return true;
  return false;
}

function keywordLength(at: i32, to: i32): i32 {
  switch (lower(byteAt(at))) {
    case 0x70: // p
      if (hasWord(at, to, "password")) return 8;
      if (hasWord(at, to, "passwd")) return 6;
      if (hasWord(at, to, "private_key")) return 11;
      return 0;
    case 0x73: // s
      return hasWord(at, to, "secret") ? 6 : 0;
    case 0x74: // t
      return hasWord(at, to, "token") ? 5 : 0;
    case 0x61: // a
      if (hasWord(at, to, "api_key") || hasWord(at, to, "api-key")) return 7;
      if (hasWord(at, to, "apikey")) return 6;
      return hasWord(at, to, "access_key") ? 10 : 0;
    default:
      return 0;
  }
}

/** Blanks, quotation marks and the backslashes before them. */
function skipMarks(at: i32, to: i32): i32 {
  let place = at;
  while (place < to && place - at < 8) {
    const byte = byteAt(place);
    if (byte !== 0x20 && byte !== 0x22 && byte !== 0x27 && byte !== 0x5c && byte !== 0x60) break;
    place++;
  }
  return place;
}

function endOfValue(at: i32, to: i32): i32 {
  let place = at;
  while (place < to && place - at < longestValue) {
    const byte = byteAt(place);
    if (
      byte <= 0x20 ||
      byte === 0x22 ||
      byte === 0x27 ||
      byte === 0x5c ||
      byte === 0x60 ||
      byte === 0x2c ||
      byte === 0x3b
    )
      break;
    place++;
  }
  return place;
}
