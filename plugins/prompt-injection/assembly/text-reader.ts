import { base64End, byteAt, decodeBase64, Span, Unescaped } from "agent-governance-sdk/assembly";
import { fold, foldByte, isTag, isWide } from "./fold";
import { beginHidden, hearHidden } from "./hidden";
import { beginMarks, hearAngle, hearBracket, hearImage, hearLineStart, isUnseen } from "./mark";
import { hearLink } from "./phrase";
import { hear, score } from "./score";
import { Signal } from "./signal";
import { endWord, feedLatin, feedLetter, isInWord } from "./word-reader";

const shortestEncodedWord: i32 = 8;
const shortestRun: i32 = 24;
const shortestMessage: i32 = 16;

/** The encoding from which a text was decoded. */
enum Layer {
  plain,
  /** Decoded from JSON escapes; invisible characters were checked before. */
  unescaped,
  /** Decoded from base64. */
  encoded,
}

let layer: Layer = Layer.plain;
let decodedTo: i32 = 0;
let end: i32 = 0;
let wordStart: i32 = 0;
let isLineStart: bool = true;
let isInTags: bool = false;

/** Reads a text; where it may be JSON itself, also what its escapes say. */
export function readText(text: Span, mayEscape: bool): void {
  read(text, Layer.plain);
  if (!mayEscape) return;
  const inner = new Unescaped(text.from, text.to);
  if (inner.isOther) read(inner.text, Layer.unescaped);
}

function read(text: Span, as: Layer): void {
  layer = as;
  end = text.to;
  decodedTo = 0;
  isLineStart = true;
  beginHidden();
  if (as !== Layer.encoded) beginMarks();
  let at = text.from;
  while (at < end) at = byteAt(at) < 0x80 ? readAscii(at) : readCharacter(at);
  finishWord(at);
}

function readAscii(at: i32): i32 {
  if (isInTags) finishWord(at);
  isInTags = false;
  const byte = byteAt(at);
  if (foldByte(byte) !== 0) return readLetters(at);
  if (byte === 0x27 && isInWord()) return at + 1;
  finishWord(at);
  if (byte === 0x0a) isLineStart = true;
  else if (byte > 0x20) readMark(at, byte);
  return at + 1;
}

function readLetters(from: i32): i32 {
  if (!isInWord()) wordStart = from;
  let at = from;
  for (let letter = foldByte(byteAt(at)); letter !== 0; letter = at < end ? foldByte(byteAt(at)) : 0) {
    feedLatin(letter);
    at++;
  }
  return at;
}

function readMark(at: i32, byte: u8): void {
  switch (byte) {
    case 0x3c: // <
      hearAngle(at, end);
      break;
    case 0x5b: // [
      hearBracket(at, end);
      break;
    case 0x21: // !
      if (at + 1 < end && byteAt(at + 1) === 0x5b) hearImage(at, end);
      break;
    case 0x40: // @
      hearLink();
      break;
    case 0x3a: // :
      if (at + 2 < end && byteAt(at + 1) === 0x2f && byteAt(at + 2) === 0x2f) hearLink();
      break;
    default:
      break;
  }
}

/** Ends the word before a place, where one has begun. */
function finishWord(at: i32): void {
  if (!isInWord()) return;
  endHeard();
  if (isLineStart) hearLineStart(wordStart, end);
  isLineStart = false;
  const mayEncode = layer !== Layer.encoded && at - wordStart >= shortestEncodedWord;
  if (mayEncode && wordStart >= decodedTo) readEncoded(wordStart);
}

function endHeard(): void {
  const before = score();
  endWord();
  hearPlace(before, wordStart);
}

function feedWide(code: i32, at: i32): void {
  const before = score();
  feedLetter(code);
  hearPlace(before, at);
}

/** A signal weighs more where it was hidden. */
function hearPlace(before: i32, at: i32): void {
  if (score() === before) return;
  if (layer === Layer.encoded) hear(Signal.encoded, 30);
  if (isUnseen(at)) hear(Signal.unseenPlace, 25);
}

/** Decodes and reads base64 that begins here. */
function readEncoded(from: i32): void {
  decodedTo = base64End(from, end);
  if (decodedTo - from < shortestRun) return;
  const text = decodeBase64(from, decodedTo);
  if (text.length < shortestMessage) return;
  const outerLayer = layer;
  const outerEnd = end;
  const outerTo = decodedTo;
  read(text, Layer.encoded);
  layer = outerLayer;
  end = outerEnd;
  decodedTo = outerTo;
  isLineStart = false;
}

/** Reads a character beyond ASCII: the text is UTF-8, as the gateway writes it. */
function readCharacter(at: i32): i32 {
  const lead = byteAt(at);
  const size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (at + size > end) return end;
  let code: i32 = <i32>lead & (0xff >> (size + 1));
  for (let index = 1; index < size; index++) code = (code << 6) | (byteAt(at + index) & 0x3f);
  if (isWide(code)) {
    feedWide(code, at);
    return at + size;
  }
  if (layer !== Layer.unescaped) hearHidden(code, isInWord() && at + size < end && foldByte(byteAt(at + size)) !== 0);
  if (isTag(code) !== isInTags) finishWord(at);
  isInTags = isTag(code);
  const letter = fold(code);
  if (letter > 0) {
    if (!isInWord()) wordStart = at;
    feedLetter(letter);
  } else if (letter === 0) finishWord(at);
  return at + size;
}
