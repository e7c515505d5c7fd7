import { type ErrorCode, GatewayError } from "../action/error.ts";

/** A position in a text file; line and column count from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** One thing that is wrong with a file. Line and column are null where the fault is about the file as a whole. */
export interface Fault {
  readonly file: string;
  readonly line: number | null;
  readonly column: number | null;
  /** The key at fault, such as `listen.gateway_port` or `keys[0].id`; absent where the place says it all. */
  readonly path?: string;
  readonly message: string;
}

/** Faults beyond this many are counted, not listed. */
const maxFaults = 100;

/** Collects every fault of a file, or of the files of one extension, so that its author reads them all at once. */
export class FaultList {
  readonly #file: string;
  readonly #places = new Map<string, Place>();
  readonly #faults: Fault[] = [];

  /** `file` is the one that faults without a known place are about. */
  constructor(file: string) {
    this.#file = file;
  }

  get count(): number {
    return this.#faults.length;
  }

  /** The faults in the order of their discovery. */
  get all(): readonly Fault[] {
    return this.#faults;
  }

  get isEmpty(): boolean {
    return this.#faults.length === 0;
  }

  /** Remembers the place of a key, for faults that are found later. */
  mark(path: string, place: Place): void {
    this.#places.set(path, place);
  }

  /** Adds a fault of a key, at `place` or else where the key or its nearest marked ancestor is. */
  add(path: string, message: string, place: Place | undefined = this.#nearest(path)): void {
    const { file, line, column } = place ?? { file: this.#file, line: null, column: null };
    this.#faults.push({ file, line, column, ...(path === "" ? {} : { path }), message });
  }

  /** Adds a fault at a place. */
  addAt(place: Place, message: string): void {
    this.add("", message, place);
  }

  /** Throws as `throwAll` does, unless there is no fault. */
  throwIfAny(code?: ErrorCode, subject?: string): void {
    if (!this.isEmpty) this.throwAll(code, subject);
  }

  /**
   * Throws `code` with one `file:line:column: path: message` a line, ordered by place, below a line that names the
   * `subject` if one is given. `data.faults` holds the same as data, at most 100; `data.omitted` counts the rest.
   */
  throwAll(code: ErrorCode = "CONFIG_INVALID", subject?: string): never {
    const faults = this.#faults.toSorted(comparePlaces).slice(0, maxFaults);
    const omitted = this.#faults.length - faults.length;
    const lines = [
      ...(subject === undefined ? [] : [`\`${subject}\``]),
      ...faults.map(formatFault),
      ...(omitted > 0 ? [`and ${omitted} more`] : []),
    ];
    throw new GatewayError(code, lines.join("\n"), { data: { faults, omitted } });
  }

  #nearest(path: string): Place | undefined {
    for (let at = path; at !== ""; at = at.slice(0, Math.max(at.lastIndexOf("."), at.lastIndexOf("["), 0))) {
      const place = this.#places.get(at);
      if (place !== undefined) return place;
    }
    return this.#places.get("");
  }
}

function comparePlaces(a: Fault, b: Fault): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

const maxQuote = 64;
/** The schema's own paths are shorter; an operator's keys in them may be longer. */
const maxPath = 256;

/** `file:line:column: path: message`, without the parts that the fault does not have. */
export function formatFault({ file, line, column, path = "", message }: Fault): string {
  const where = line === null ? file : `${file}:${line}:${column}`;
  return path === "" ? `${where}: ${message}` : `${where}: ${escapeInvisible(path.slice(0, maxPath))}: ${message}`;
}

/** User input as a message may show it: in backticks, at most 64 characters, invisible and control characters escaped. */
export function quoteInput(text: string): string {
  const cut = text.length > maxQuote ? `${text.slice(0, maxQuote)}…` : text;
  return `\`${escapeInvisible(cut)}\``;
}

/** Replaces all but letters, digits and visible ASCII by code points, so that ANSI, bidi and zero-width tricks are inert. */
export function escapeInvisible(text: string): string {
  return text.replace(/[^\x20-\x5f\x61-\x7e\p{L}\p{N}…]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}
