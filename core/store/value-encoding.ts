import { stringWords, structureWords, valueWords } from "./value-word.ts";

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

/** First byte of a text that is base64, and of one that is lower-case hex: then come the bytes it stands for. */
const base64Form = 0xf8;
const hexForm = 0xf9;
/** First byte of a text that is kept piece by piece, as `encodePieces` says. */
const pieceForm = 0xfa;

/** Shorter texts are kept as they are, and so are longer ones, whatever they hold. */
const minCompact = 48;
const maxCompact = 65_536;

const base64Text = /^[A-Za-z0-9+/]+={0,2}$/;
const hexText = /^(?:[0-9a-f]{2})+$/;

/** Returns the bytes of a value. */
export function encodeValue(text: string): Buffer {
  if (text.length < minCompact || text.length > maxCompact) return Buffer.from(text);
  if (text.startsWith("{") || text.startsWith("[")) return encodeMembers(text) ?? Buffer.from(text);
  if (hexText.test(text)) return Buffer.concat([Buffer.of(hexForm), Buffer.from(text, "hex")]);
  if (!base64Text.test(text)) return Buffer.from(text);
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? Buffer.concat([Buffer.of(base64Form), bytes]) : Buffer.from(text);
}

/**
 * Returns the text of a value. Never throws: damaged bytes give a text that begins as no value does, which its reader
 * refuses.
 */
export function decodeValue(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (buffer[0]) {
    case base64Form:
      return buffer.toString("base64", 1);
    case hexForm:
      return buffer.toString("hex", 1);
    case pieceForm:
      return decodePieces(buffer) ?? buffer.toString("latin1");
    default:
      return buffer.toString("utf8");
  }
}

/** The codes of a piece inside quotes, beside those of the words. */
const literalCode = 0x7f;
const hashCode = 0x7e;
const digestCode = 0x7d;
const idCode = 0x7c;
const timeCode = 0x7b;
const saltCode = 0x7a;
const sessionCode = 0x79;
const principalCode = 0x78;
/** Set on the code of a piece inside quotes: the structure after it is the usual one, and is left out. */
const usualNext = 0x80;

/** The codes of a piece between quotes, beside those of the words: a number up to a comma, up to a brace, and other text. */
const commaNumberCode = 0xfe;
const braceNumberCode = 0xfd;
const otherCode = 0xff;

const sessionPrefix = "session-v1-";
const principalPrefix = "principal-v1-";
const digestPrefix = "sha256:";

const hashText = /^[0-9a-f]{64}$/;
/** The texts that hold a hash, by their length. */
const hashForms: ReadonlyMap<number, { readonly code: number; readonly prefix: string }> = new Map([
  [64, { code: hashCode, prefix: "" }],
  [digestPrefix.length + 64, { code: digestCode, prefix: digestPrefix }],
  [sessionPrefix.length + 64, { code: sessionCode, prefix: sessionPrefix }],
  [principalPrefix.length + 64, { code: principalCode, prefix: principalPrefix }],
]);
const idText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const timeText = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** 16 bytes in base64url: the last character has four bits that are zero. */
const saltText = /^[A-Za-z0-9_-]{21}[AQgw]$/;
const numberText = /^:(?:0|[1-9]\d{0,14})[,}]$/;

/** Words inside quotes by their code: names, which `:` follows, and then values, which `,` follows. */
const quotedWords: readonly string[] = [...stringWords, ...valueWords];
const quotedCodes = codesOf(quotedWords);
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
      at += before.bytes.copy(scratch, at, before.starts[from], before.starts[index]);
    }
    if (index === count) break;
    const hasNext = index < count - 1;
    const pieces = (hasNext ? `${members[index]},` : (members[index] as string)).split('"');
    const isBetweenStrings = !hasNext || (pieces.length % 2 === 0) === index > 0;
    const end = isBetweenStrings ? putPieces(pieces, at, index > 0) : undefined;
    if (end === undefined) return undefined;
    starts.push(end);
    index++;
  }
  return starts;
}

function putStructure(piece: string, at: number): number {
  const code = structureCodes.get(piece);
  if (code === undefined && !numberText.test(piece)) return putText(otherCode, piece, at);
  scratch[at] = code ?? (piece.endsWith(",") ? commaNumberCode : braceNumberCode);
  return code === undefined ? putNumber(Number(piece.slice(1, -1)), at + 1) : at + 1;
}

function putQuoted(piece: string, at: number): number {
  const word = quotedCodes.get(piece);
  if (word !== undefined) {
    scratch[at] = word;
    return at + 1;
  }
  const { length } = piece;
  if (length === 36 && idText.test(piece)) return putBytes(idCode, piece.replaceAll("-", ""), "hex", at);
  if (length === 22 && saltText.test(piece)) return putBytes(saltCode, piece, "base64url", at);
  if (length === 24 && timeText.test(piece)) {
    const ms = Date.parse(piece);
    // A second of 60 is a time that is written otherwise.
    if (ms >= 0 && new Date(ms).toISOString() === piece) {
      scratch[at] = timeCode;
      return scratch.writeUIntBE(ms, at + 1, 6);
    }
  }
  const hashed = hashForms.get(length);
  if (hashed !== undefined && piece.startsWith(hashed.prefix)) {
    const hash = piece.slice(hashed.prefix.length);
    if (hashText.test(hash)) return putBytes(hashed.code, hash, "hex", at);
  }
  return putText(literalCode, piece, at);
}

function putBytes(code: number, text: string, encoding: "hex" | "base64url", at: number): number {
  scratch[at] = code;
  return at + 1 + scratch.write(text, at + 1, encoding);
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

/** Reads pieces one after another. What lies beyond the end reads as nothing, and is seen there. */
class PieceReader {
  readonly #bytes: Buffer;
  #at = 1;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Undefined where the bytes do not end with a piece. */
  get isAtEnd(): boolean | undefined {
    return this.#at > this.#bytes.length ? undefined : this.#at === this.#bytes.length;
  }

  code(): number {
    return this.#bytes[this.#at++] ?? literalCode;
  }

  structure(): string | undefined {
    const code = this.code();
    if (code === otherCode) return this.#text();
    if (code === commaNumberCode) return `:${this.#number()},`;
    if (code === braceNumberCode) return `:${this.#number()}}`;
    return structureWords[code];
  }

  quoted(code: number): string | undefined {
    switch (code) {
      case literalCode:
        return this.#text();
      case hashCode:
        return this.#take(32, "hex");
      case digestCode:
        return digestPrefix + this.#take(32, "hex");
      case sessionCode:
        return sessionPrefix + this.#take(32, "hex");
      case principalCode:
        return principalPrefix + this.#take(32, "hex");
      case idCode:
        return idOf(this.#take(16, "hex"));
      case timeCode:
        return new Date(Number.parseInt(`0${this.#take(6, "hex")}`, 16)).toISOString();
      case saltCode:
        return this.#take(16, "base64url");
      default:
        return quotedWords[code];
    }
  }

  #text(): string {
    return this.#take(this.#number(), "utf8");
  }

  #number(): number {
    let [number, unit] = [0, 1];
    for (;;) {
      const byte = this.#bytes[this.#at++] ?? 0;
      number += (byte % 0x80) * unit;
      if (byte < 0x80 || unit > Number.MAX_SAFE_INTEGER) return number;
      unit *= 0x80;
    }
  }

  #take(length: number, encoding: BufferEncoding): string {
    const from = this.#at;
    this.#at += length;
    return this.#bytes.toString(encoding, from, this.#at);
  }
}

function decodePieces(bytes: Buffer): string | undefined {
  const reader = new PieceReader(bytes);
  const pieces: string[] = [];
  for (let isQuoted = false; ; isQuoted = !isQuoted) {
    const code = isQuoted ? reader.code() : 0;
    const piece = isQuoted ? reader.quoted(code % usualNext) : reader.structure();
    if (piece === undefined) return undefined;
    pieces.push(piece);
    if (code >= usualNext) {
      pieces.push(code % usualNext < stringWords.length ? ":" : ",");
      isQuoted = false;
    }
    if (reader.isAtEnd !== false) return reader.isAtEnd ? pieces.join('"') : undefined;
  }
}

function idOf(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
