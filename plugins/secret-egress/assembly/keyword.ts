import { byteAt, hasWord, isAlphanumeric, isDigit, isWordByte, lower } from "agent-governance-sdk/assembly";
import { longestValue, looksRandom } from "./random-value";

const longestName: i32 = 32;

/** Words behind a keyword that make a name speak about a secret, and not hold it: `token_count`, `secretLength`. */
const traits: StaticArray<string> = [
  "length",
  "len",
  "size",
  "count",
  "name",
  "type",
  "digest",
  "url",
  "uri",
  "path",
  "file",
  "expiry",
  "expires",
  "expires_at",
  "expires_in",
  "ttl",
  "version",
  "policy",
  "label",
  "limit",
];

/** The value that the last `keywordAt` looked at. */
export let valueStart: i32 = 0;
export let valueEnd: i32 = 0;
/** The place behind the keyword that was found last; 0 where none began. */
export let behindKeyword: i32 = 0;

export function forgetKeyword(): void {
  behindKeyword = 0;
}

/** `password = …`, `api_key: "…"`: whether a value behind such a name looks random. */
export function keywordAt(at: i32, to: i32): bool {
  const length = keywordLength(at, to);
  behindKeyword = length === 0 ? 0 : at + length;
  valueEnd = at;
  if (length === 0) return false;
  let place = behindKeyword;
  while (place < to && place - behindKeyword < longestName && isWordByte(byteAt(place))) place++;
  const isTrait = endsInTrait(behindKeyword, place);
  place = skipMarks(place, to);
  const sign = byteAt(place);
  if (sign !== 0x3d && sign !== 0x3a) return false;
  valueStart = skipMarks(place + (byteAt(place + 1) === 0x3d ? 2 : 1), to);
  valueEnd = endOfValue(valueStart, to);
  if (isTrait || !looksRandom(valueStart, valueEnd)) return false;
  return isQuote(byteAt(valueStart - 1)) || !isCode(valueStart, valueEnd);
}

/** Returns true if the name of a member marks its value as secret. */
export function isSecretName(from: i32, to: i32): bool {
  for (let at = from; at < to && at - from < 128; at++) {
    const length = keywordLength(at, to);
    if (length > 0 && !endsInTrait(at + length, to)) return true;
  }
  return false;
}

export function keywordLength(at: i32, to: i32): i32 {
  switch (lower(byteAt(at))) {
    case 0x70: // p
      if (hasWord(at, to, "password")) return 8;
      if (hasWord(at, to, "passwd")) return 6;
      if (hasWord(at, to, "passphrase")) return 10;
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

/** Returns true if a name ends in a trait that is a word of its own. */
function endsInTrait(from: i32, to: i32): bool {
  if (from === to) return false;
  for (let index = 0; index < traits.length; index++) {
    const start = to - traits[index].length;
    if (start < from || !hasWord(start, to, traits[index])) continue;
    const first = byteAt(start);
    if (start === from || (first >= 0x41 && first <= 0x5a) || !isAlphanumeric(byteAt(start - 1))) return true;
  }
  return false;
}

/** Names joined by dots, such as `X25519.secret_length`, and calls of them: none of their parts has digits in two places. */
function isCode(from: i32, to: i32): bool {
  let joints = 0;
  let digits = 0;
  let before: u8 = 0;
  if (isDigit(byteAt(from))) return false;
  for (let at = from; at < to; at++) {
    const byte = byteAt(at);
    if (byte === 0x28) return true; // a call
    if (byte === 0x2e || byte === 0x5b) {
      joints++;
      digits = 0;
    } else if (
      !isAlphanumeric(byte) &&
      byte !== 0x5f &&
      byte !== 0x24 &&
      byte !== 0x3f &&
      byte !== 0x21 &&
      byte !== 0x5d
    )
      return false;
    if (isDigit(byte) && !isDigit(before) && ++digits > 1) return false;
    before = byte;
  }
  return joints > 0;
}

/** Blanks, quotation marks and the backslashes before them. */
function skipMarks(at: i32, to: i32): i32 {
  let place = at;
  while (place < to && place - at < 8) {
    const byte = byteAt(place);
    if (byte !== 0x20 && byte !== 0x5c && !isQuote(byte)) break;
    place++;
  }
  return place;
}

function isQuote(byte: u8): bool {
  return byte === 0x22 || byte === 0x27 || byte === 0x60;
}

function endOfValue(at: i32, to: i32): i32 {
  let place = at;
  while (place < to && place - at < longestValue) {
    const byte = byteAt(place);
    if (byte <= 0x20 || isQuote(byte) || byte === 0x5c || byte === 0x2c || byte === 0x3b) break;
    place++;
  }
  while (place < to && (byteAt(place) & 0xc0) === 0x80) place++; // not within a character
  return place;
}
