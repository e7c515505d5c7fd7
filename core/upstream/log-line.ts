import type { Clock } from "../kernel/port.ts";

const longestLine = 2_048;
const linesPerSecond = 50;

/**
 * Turns a process's standard error into log lines: the first 2,048 bytes of each, 50 a second at most.
 * What is left out is counted and said.
 */
export class LogLines {
  readonly #clock: Clock;
  readonly #sink: (line: string) => void;
  #parts: Buffer[] = [];
  #size = 0;
  #second = 0;
  #sent = 0;
  #dropped = 0;

  constructor(clock: Clock, sink: (line: string) => void) {
    this.#clock = clock;
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, start)) {
      this.#keep(chunk.subarray(start, end));
      this.flush();
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
  }

  /** The line so far is all there is of it. */
  flush(): void {
    if (this.#size === 0) return;
    const text = Buffer.concat(this.#parts).toString("utf8").trimEnd();
    this.#parts = [];
    this.#size = 0;
    if (text !== "") this.write(text);
  }

  /** A line from elsewhere, under the same limits. */
  write(line: string): void {
    const second = Math.floor(this.#clock() / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#sent = 0;
      if (this.#dropped > 0) this.#sink(`(${this.#dropped} lines left out)`);
      this.#dropped = 0;
    }
    if (++this.#sent <= linesPerSecond) this.#sink(line.slice(0, longestLine));
    else this.#dropped++;
  }

  #keep(part: Buffer): void {
    const room = longestLine - this.#size;
    if (room <= 0 || part.length === 0) return;
    const kept = Buffer.from(part.subarray(0, room));
    this.#parts.push(kept);
    this.#size += kept.length;
  }
}
