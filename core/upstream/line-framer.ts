const newline = 0x0a;
const carriageReturn = 0x0d;
const edge = 256;

export interface LineListener {
  /** One line without its line end; never empty. The bytes are the listener's to keep. */
  onLine(line: Buffer): void;
  /** A line longer than the bound has ended; `head` and `tail` are its first and last bytes, at most 256 each. */
  onLongLine(head: Buffer, tail: Buffer): void;
  /** A line went on past everything that may be skipped. The framer must not be fed again. */
  onEndlessLine(): void;
}

/**
 * Cuts a byte stream into lines. Keeps at most `maxBytes` of one; what is longer is skipped to its end, up to
 * eight times as much.
 */
export class LineFramer {
  readonly #maxBytes: number;
  readonly #listener: LineListener;
  #parts: Buffer[] = [];
  #size = 0;
  #head: Buffer = Buffer.alloc(0);
  #tail: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(maxBytes: number, listener: LineListener) {
    this.#maxBytes = maxBytes;
    this.#listener = listener;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      this.#add(chunk.subarray(start, end));
      this.#finish();
      start = end + 1;
      if (this.#ended) return;
    }
    if (start < chunk.length) this.#add(chunk.subarray(start));
  }

  #add(part: Buffer): void {
    this.#size += part.length;
    if (this.#size <= this.#maxBytes) {
      this.#parts.push(part);
      return;
    }
    this.#skip(part);
    if (this.#size > this.#maxBytes * 8 && !this.#ended) {
      this.#ended = true;
      this.#listener.onEndlessLine();
    }
  }

  #skip(part: Buffer): void {
    if (this.#head.length === 0) {
      const kept = Buffer.concat([...this.#parts, part.subarray(0, edge)]);
      this.#head = Buffer.from(kept.subarray(0, edge));
      this.#tail = Buffer.from(kept.subarray(-edge));
      this.#parts = [];
    }
    this.#tail = Buffer.from(Buffer.concat([this.#tail, part.subarray(-edge)]).subarray(-edge));
  }

  #finish(): void {
    const long = this.#size > this.#maxBytes;
    const line = long
      ? undefined
      : withoutReturn(this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts));
    const [head, tail] = [this.#head, this.#tail];
    this.#parts = [];
    this.#size = 0;
    this.#head = this.#tail = Buffer.alloc(0);
    if (this.#ended) return;
    if (line === undefined) this.#listener.onLongLine(head, tail);
    else if (line.length > 0) this.#listener.onLine(line);
  }
}

function withoutReturn(line: Buffer | undefined): Buffer {
  if (line === undefined) return Buffer.alloc(0);
  return line.at(-1) === carriageReturn ? line.subarray(0, -1) : line;
}
