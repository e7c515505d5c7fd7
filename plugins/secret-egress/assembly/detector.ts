import { byteAt, hasPrefix, isAlphanumeric, isDigit, isWordByte } from "agent-governance-sdk/assembly";
import { Bytes, runOf } from "./byte-class";
import { FoundList, isWanted, note } from "./found";
import { behindKeyword, forgetKeyword, keywordAt, valueEnd, valueStart } from "./keyword";
import { aws, azure, discord, jwt, keyword, none, privateKey, telegram, terraform } from "./kind";
import { beginsShape, endOfShape, isBotToken, pairOf, shapeAt } from "./shape";

const longestKey: i32 = 16_384;

/** The credential that was found last begins and ends here. */
let start: i32 = 0;
let end: i32 = 0;

/** Up to here a value was judged: it holds shapes, but no keyword that would be judged again. */
let judgedTo: i32 = 0;

/** The end of the private key that begins last. */
let keyEnd: i32 = 0;

/** Behind an escape that ends in a letter, where a word may begin all the same: `\nAKIA…` in JSON, however deep. */
let behindEscape: i32 = -1;

/** Bits of a byte: a letter or digit; a mark that a credential or an escape is told by. */
const classes = new StaticArray<u8>(256);
const alphanumeric: u8 = 1;
const mark: u8 = 2;

/** By the first two bytes of a word, folded: whether a credential or a keyword may begin so. */
const starts = new StaticArray<bool>(1_024);

for (let byte = 0; byte < 256; byte++) {
  const isMark = "-\\.~".includes(String.fromCharCode(byte));
  classes[byte] = (isAlphanumeric(<u8>byte) ? alphanumeric : 0) | (isMark ? mark : 0);
}
for (let pair = 0; pair < 1_024; pair++) starts[pair] = beginsShape(pair);
/** Pairs of keywords, of AWS and JSON Web Tokens, and of a number that Discord writes in base64. */
const pairs = "pa pr se to ap ac AK AS ey MT Mj Mz ND NT Nj Nz OD OT".split(" ");
for (let index = 0; index < pairs.length; index++) {
  starts[pairOf(<u8>pairs[index].charCodeAt(0), <u8>pairs[index].charCodeAt(1))] = true;
}
for (let byte: u8 = 0x30; byte <= 0x39; byte++) {
  for (let second: u8 = 0x30; second <= 0x39; second++) starts[pairOf(byte, second)] = true;
}

/** Adds the credentials in a span, of the kinds that are wanted; places count from `base`. Linear in the span. */
export function detect(from: i32, to: i32, base: i32, list: FoundList): void {
  let before: u8 = 0;
  judgedTo = from;
  keyEnd = from;
  behindEscape = -1;
  forgetKeyword();
  for (let at = from; at < to; ) {
    const bits = unchecked(classes[byteAt(at)]);
    const isWord = bits === alphanumeric && ((before & alphanumeric) === 0 || at === behindEscape);
    if (isWord ? !unchecked(starts[pairOf(byteAt(at), byteAt(at + 1))]) : (bits & mark) === 0) {
      before = bits;
      at++;
      continue;
    }
    let next = at + 1;
    const kind = isWord ? wordAt(at, from, to) : markAt(at, from, to);
    if (kind !== none && isWanted(kind)) {
      note(kind);
      list.add(kind, start - base, end - base);
      // A value and a key may hold further credentials.
      if (kind !== keyword && kind !== privateKey) next = max(next, end);
    }
    next = max(next, behindKeyword);
    at = next;
    before = classes[byteAt(at - 1)];
  }
}

/** Detects what is told by a mark. */
function markAt(at: i32, from: i32, to: i32): i32 {
  switch (byteAt(at)) {
    case 0x5c: {
      const escaped = byteAt(at + 1);
      if (escaped === 0x6e || escaped === 0x72 || escaped === 0x74) behindEscape = at + 2;
      return none;
    }
    case 0x2d: // -
      return isPrivateKey(at, to) ? found(privateKey, at, endOfKey(at, to)) : none;
    case 0x2e: // .
      return isTerraform(at, from, to) ? found(terraform, at - 14, at + 9 + runOf(at + 9, to, Bytes.word)) : none;
    default:
      return isAzure(at, from, to) ? found(azure, at - 5, at + 1 + runOf(at + 1, to, Bytes.dotted)) : none;
  }
}

/** Detects the credential or the keyword that begins here. */
function wordAt(at: i32, from: i32, to: i32): i32 {
  const isInside = at > from && at !== behindEscape && isWordByte(byteAt(at - 1));
  const kind = isInside ? none : credentialAt(at, to);
  if (kind !== none || at < judgedTo) return kind;
  const isKeyword = keywordAt(at, to);
  judgedTo = max(judgedTo, valueEnd);
  return isKeyword ? found(keyword, valueStart, valueEnd) : none;
}

function credentialAt(at: i32, to: i32): i32 {
  const byte = byteAt(at);
  if (isDigit(byte) && isBotToken(at, to)) return found(telegram, at, at + 11 + runOf(at + 11, to, Bytes.word));
  if (byte === 0x41 && isAws(at, to)) return found(aws, at, at + 20);
  if (byte === 0x65 && isJwt(at, to)) return jwt;
  if (byte >= 0x4d && byte <= 0x4f && isDiscord(at, to)) return found(discord, at, at + runOf(at, to, Bytes.dotted));
  const shape = shapeAt(at, to);
  return shape === null ? none : found(shape.kind, at, endOfShape(shape, at, to));
}

function found(kind: i32, from: i32, to: i32): i32 {
  start = from;
  end = to;
  return kind;
}

function isAws(at: i32, to: i32): bool {
  if (!hasPrefix(at, to, "AKIA") && !hasPrefix(at, to, "ASIA")) return false;
  return at + 20 <= to && runOf(at, at + 20, Bytes.upper) === 20 && (at + 20 >= to || !isAlphanumeric(byteAt(at + 20)));
}

/** `abc1Q~` before 31 to 34 characters: seen at its tilde. */
function isAzure(at: i32, from: i32, to: i32): bool {
  if (at - 5 < from || byteAt(at - 1) !== 0x51 || !isDigit(byteAt(at - 2))) return false;
  if (runOf(at - 5, at - 2, Bytes.dotted) !== 3) return false;
  const run = runOf(at + 1, min(to, at + 40), Bytes.dotted);
  return run >= 31;
}

/** Fourteen letters and digits before `.atlasv1.`: seen at its dot. */
function isTerraform(at: i32, from: i32, to: i32): bool {
  if (at - 14 < from || !hasPrefix(at, to, ".atlasv1.")) return false;
  return runOf(at - 14, at, Bytes.alphanumeric) === 14 && runOf(at + 9, min(to, at + 80), Bytes.word) >= 60;
}

/** The number of a user in base64, a time and a signature. */
function isDiscord(at: i32, to: i32): bool {
  const user = runOf(at, min(to, at + 30), Bytes.alphanumeric);
  const second = at + user + 1;
  if (user < 24 || user > 28 || byteAt(second - 1) !== 0x2e || runOf(second, to, Bytes.word) !== 6) return false;
  return byteAt(second + 6) === 0x2e && runOf(second + 7, min(to, second + 60), Bytes.word) >= 27;
}

function isPrivateKey(at: i32, to: i32): bool {
  if (!hasPrefix(at, to, "-----BEGIN ")) return false;
  for (let place = at + 11; place < at + 48; place++) if (hasPrefix(place, to, "PRIVATE KEY")) return true;
  return false;
}

/** Behind the line that closes the key; without one, behind what may be of it. Reads no byte twice. */
function endOfKey(at: i32, to: i32): i32 {
  if (at < keyEnd) return keyEnd;
  const most = min(to, at + longestKey);
  let place = at + 11;
  while (place < most && !hasPrefix(place, to, "-----END ")) place++;
  if (place < most) {
    place += 9;
    while (place < most && !hasPrefix(place, to, "-----")) place++;
    place = min(most, place + 5);
  }
  while (place < to && (byteAt(place) & 0xc0) === 0x80) place++; // not within a character
  keyEnd = place;
  return place;
}

/** Three parts of base64url, the first two of which begin like an object. */
function isJwt(at: i32, to: i32): bool {
  if (!hasPrefix(at, to, "eyJ")) return false;
  const head = runOf(at, to, Bytes.word);
  const second = at + head + 1;
  if (head < 12 || byteAt(second - 1) !== 0x2e || !hasPrefix(second, to, "eyJ")) return false;
  const body = runOf(second, to, Bytes.word);
  const third = second + body + 1;
  if (body < 12 || byteAt(third - 1) !== 0x2e) return false;
  const last = runOf(third, to, Bytes.word);
  start = at;
  end = third + last;
  return last >= 16;
}
