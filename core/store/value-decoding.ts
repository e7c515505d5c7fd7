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
