import { decodeValue } from "./value-decoding.ts";
import {
  base64Form,
  braceNumberCode,
  commaNumberCode,
  digestCode,
  digestPrefix,
  hashCode,
  hexForm,
  idCode,
  literalCode,
  otherCode,
  pieceForm,
  principalCode,
  principalPrefix,
  quotedWords,
  saltCode,
  sessionCode,
  sessionPrefix,
  stringWords,
  structureWords,
  timeCode,
  usualNext,
} from "./value-word.ts";

/**
 * The encoding of the store's values. A value is text; its bytes are UTF-8, or one of three compact forms, which a first
 * byte that no UTF-8 text begins with tells apart. Every form gives back exactly the text that was put.
 */
export const valueEncoding = {
  name: "gateway-value-v1",
  format: "buffer",
  encode: encodeValue,
  decode: decodeValue,
} as const;

/** Shorter texts are kept as they are. */
const minCompact = 48;
/** Longer ones are kept as they are too, unless they are base64. */
const maxCompact = 65_536;

const base64Text = /^[A-Za-z0-9+/]+={0,2}$/;
const hexText = /^(?:[0-9a-f]{2})+$/;

/** Returns the bytes of a value. */
export function encodeValue(text: string): Buffer {
  if (text.length < minCompact) return Buffer.from(text);
  if (text.startsWith("{") || text.startsWith("[")) return encodeMembers(text) ?? Buffer.from(text);
  const start = text.slice(0, maxCompact);
  if (start === text && hexText.test(text)) return Buffer.concat([Buffer.of(hexForm), Buffer.from(text, "hex")]);
  if (!base64Text.test(start)) return Buffer.from(text);
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? Buffer.concat([Buffer.of(base64Form), bytes]) : Buffer.from(text);
}

/** Returns the bytes of a value whose text is the base64 of all but the first byte. Takes the place of that byte. */
export function encodeBytes(bytes: Buffer): Buffer {
  const length = Math.ceil((bytes.length - 1) / 3) * 4;
  if (length < minCompact) return Buffer.from(bytes.toString("base64", 1));
  bytes[0] = base64Form;
  return bytes;
}

/** The digits of a hash. */
const hashDigits = 64;
/** The texts that hold a hash, by their length. */
const hashForms: ReadonlyMap<number, { readonly code: number; readonly prefix: string }> = new Map([
  [64, { code: hashCode, prefix: "" }],
  [digestPrefix.length + 64, { code: digestCode, prefix: digestPrefix }],
  [sessionPrefix.length + 64, { code: sessionCode, prefix: sessionPrefix }],
  [principalPrefix.length + 64, { code: principalCode, prefix: principalPrefix }],
]);
/** The places at which the groups of digits of an id begin, and their lengths; a hyphen lies between two. */
const idGroups = [
  [0, 8],
  [9, 4],
  [14, 4],
  [19, 4],
  [24, 12],
] as const;
const idLength = 36;
const hyphenUnit = 0x2d;
const timeText = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** 16 bytes in base64url: the last character has four bits that are zero. */
const saltText = /^[A-Za-z0-9_-]{21}[AQgw]$/;
const numberText = /^:(?:0|[1-9]\d{0,14})[,}]$/;

const quotedCodes = codesOf(quotedWords);
const maxWord = Math.max(...quotedWords.map(({ length }) => length));
const structureCodes = codesOf(structureWords);

function codesOf(words: readonly string[]): ReadonlyMap<string, number> {
  return new Map(words.map((word, code) => [word, code]));
}

/** A piece takes at most its bytes in UTF-8, a code and a length. */
const scratch = Buffer.alloc(maxCompact * 4 + 16);

/**
 * Keeps a text as its pieces between quotes, which are inside and outside a JSON string in turn: frequent words by a code,
 * hashes, ids, times and salts as the bytes they stand for, anything else as it is. Undefined for a text that UTF-8 does
 * not hold, or that takes too many bytes.
 */
export function encodePieces(text: string): Buffer | undefined {
  // Far longer than any that fits: not even split, which takes long.
  if (text.length > maxCompact * 4 || !text.isWellFormed()) return undefined;
  scratch[0] = pieceForm;
  const end = putPieces(text.split('"'), 1, false);
  return end === undefined ? undefined : Buffer.from(scratch.subarray(0, end));
}

/** Puts pieces one after another. Returns where they end, undefined where they take too many bytes. */
function putPieces(pieces: readonly string[], from: number, startsQuoted: boolean): number | undefined {
  let at = from;
  let isQuoted = startsQuoted;
  for (let index = 0; index < pieces.length; index++) {
    if (at > maxCompact) return undefined;
    const piece = pieces[index] as string;
    if (!isQuoted) {
      at = putStructure(piece, at);
      isQuoted = true;
      continue;
    }
    const codeAt = at;
    at = putQuoted(piece, at);
    const code = scratch[codeAt] as number;
    isQuoted = pieces[index + 1] === (code < stringWords.length ? ":" : ",");
    if (!isQuoted) continue;
    scratch[codeAt] = code | usualNext;
    index++;
  }
  return at;
}

/** A text that was encoded, member by member, and the place of each member in its bytes. */
interface Encoded {
  readonly members: readonly string[];
  readonly starts: readonly number[];
  readonly bytes: Buffer;
}

/** The last text of each number of members: most of the next one's stand at the same place, and are not encoded again. */
const lastEncoded = new Map<number, Encoded>();
const maxRememberedMembers = 128;

/** Keeps a text as `encodePieces` does, member by member: from one comma before a quote to the next. */
function encodeMembers(text: string): Buffer | undefined {
  if (text.length > maxCompact) return undefined;
  const members = text.split(',"');
  if (members.length > maxRememberedMembers || !text.isWellFormed()) return encodePieces(text);
  scratch[0] = pieceForm;
  const starts = putMembers(members, lastEncoded.get(members.length));
  if (starts === undefined) return encodePieces(text);
  const bytes = Buffer.from(scratch.subarray(0, starts[members.length]));
  lastEncoded.set(members.length, { members, starts, bytes });
  return bytes;
}

/** Returns where each member starts, and the last one ends; undefined where a comma before a quote is inside a string. */
function putMembers(members: readonly string[], before: Encoded | undefined): number[] | undefined {
  const starts = [1];
  const count = members.length;
  let index = 0;
  while (index < count) {
    const from = index;
    let at = starts[index] as number;
    if (before !== undefined) {
      const shift = at - (before.starts[index] as number);
      while (index < count && members[index] === before.members[index]) {
        starts.push((before.starts[++index] as number) + shift);
      }
      // Most runs are short: cheaper byte by byte than by a call into the engine.
      const to = before.starts[index] as number;
      for (let each = before.starts[from] as number; each < to; each++) scratch[at++] = before.bytes[each] as number;
    }
    if (index === count) break;
    const hasNext = index < count - 1;
    const member = members[index] as string;
    const end = (hasNext && index > 0 ? putPair(member, at) : undefined) ?? putMember(member, at, index > 0, hasNext);
    if (end === undefined) return undefined;
    starts.push(end);
    index++;
  }
  return starts;
}

/** Puts a member by its pieces; undefined where it does not lie between two strings. */
function putMember(member: string, at: number, startsQuoted: boolean, hasNext: boolean): number | undefined {
  const pieces = (hasNext ? `${member},` : member).split('"');
  const isBetweenStrings = !hasNext || (pieces.length % 2 === 0) === startsQuoted;
  return isBetweenStrings ? putPieces(pieces, at, startsQuoted) : undefined;
}

const quoteUnit = 0x22;
const colonUnit = 0x3a;

/**
 * Puts a name with a value that is one string, or none, and the comma behind it, as `putMember` does: it makes most of what
 * differs from one record to the next. Undefined for any other member.
 */
function putPair(member: string, from: number): number | undefined {
  const nameEnd = member.indexOf('"');
  if (nameEnd === -1 || member.charCodeAt(nameEnd + 1) !== colonUnit || from > maxCompact) return undefined;
  const name = member.slice(0, nameEnd);
  const valueAt = nameEnd + 3;
  const isText = member.charCodeAt(nameEnd + 2) === quoteUnit;
  if (member.indexOf('"', isText ? valueAt : nameEnd + 1) !== (isText ? member.length - 1 : -1)) return undefined;
  const at = putQuoted(name, from);
  if (!isText) return putStructure(`${member.slice(nameEnd + 1)},`, at);
  const isUsual = (scratch[from] as number) < stringWords.length;
  if (isUsual) scratch[from] = (scratch[from] as number) | usualNext;
  const codeAt = isUsual ? at : putStructure(":", at);
  const end = putQuoted(member.slice(valueAt, -1), codeAt);
  if ((scratch[codeAt] as number) < stringWords.length) return putStructure(",", end);
  scratch[codeAt] = (scratch[codeAt] as number) | usualNext;
  return end;
}

function putStructure(piece: string, at: number): number {
  const code = structureCodes.get(piece);
  if (code === undefined && !numberText.test(piece)) return putText(otherCode, piece, at);
  scratch[at] = code ?? (piece.endsWith(",") ? commaNumberCode : braceNumberCode);
  return code === undefined ? putNumber(Number(piece.slice(1, -1)), at + 1) : at + 1;
}

function putQuoted(piece: string, at: number): number {
  const { length } = piece;
  const word = length > maxWord ? undefined : quotedCodes.get(piece);
  if (word !== undefined) {
    scratch[at] = word;
    return at + 1;
  }
  return putSpecial(piece, at) ?? putText(literalCode, piece, at);
}

/** Puts an id, a salt, a time or a hash; undefined for anything else. */
function putSpecial(piece: string, at: number): number | undefined {
  const { length } = piece;
  if (length === idLength) {
    scratch[at] = idCode;
    let end: number | undefined = at + 1;
    for (const [from, digits] of idGroups) {
      if (from > 0 && piece.charCodeAt(from - 1) !== hyphenUnit) return undefined;
      end = putHex(piece, from, digits, end);
      if (end === undefined) return undefined;
    }
    return end;
  }
  if (length === 22) {
    scratch[at] = saltCode;
    return saltText.test(piece) ? at + 1 + scratch.write(piece, at + 1, "base64url") : undefined;
  }
  if (length === 24) return putTime(piece, at);
  const hashed = hashForms.get(length);
  if (hashed === undefined || !piece.startsWith(hashed.prefix)) return undefined;
  scratch[at] = hashed.code;
  return putHex(piece, length - hashDigits, hashDigits, at + 1);
}

const hexUnits = "0123456789abcdef";
/** The value of each lower-case hex digit by its code unit; −1 for what is none. */
const hexValues: Int8Array = Int8Array.from({ length: 128 }, (_, unit) => hexUnits.indexOf(String.fromCharCode(unit)));

/** Puts the bytes of so many lower-case hex digits; undefined where anything else is among them. */
function putHex(text: string, from: number, digits: number, at: number): number | undefined {
  let end = at;
  for (let index = from; index < from + digits; index += 2) {
    const high = hexValues[text.charCodeAt(index)] ?? -1;
    const byte = high * 16 + (hexValues[text.charCodeAt(index + 1)] ?? -17);
    if (high < 0 || byte < high * 16) return undefined;
    scratch[end++] = byte;
  }
  return end;
}

/** The last second that was put: most times fall into it. */
const lastSecond = { text: "\n", ms: 0 };

function putTime(piece: string, at: number): number | undefined {
  if (!timeText.test(piece)) return undefined;
  if (!piece.startsWith(lastSecond.text)) {
    const ms = Date.parse(piece);
    // A second of 60 is a time that is written otherwise.
    if (!(ms >= 0) || new Date(ms).toISOString() !== piece) return undefined;
    lastSecond.text = piece.slice(0, 20);
    lastSecond.ms = Math.floor(ms / 1000) * 1000;
  }
  scratch[at] = timeCode;
  return scratch.writeUIntBE(lastSecond.ms + Number(piece.slice(20, 23)), at + 1, 6);
}

function putText(code: number, piece: string, at: number): number {
  scratch[at] = code;
  const from = putNumber(Buffer.byteLength(piece), at + 1);
  return from + scratch.write(piece, from);
}

/** Seven bits a byte, the lowest first; all but the last have the highest bit set. */
function putNumber(number: number, at: number): number {
  let rest = number;
  let to = at;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) scratch[to++] = (rest % 0x80) | 0x80;
  scratch[to++] = rest;
  return to;
}
