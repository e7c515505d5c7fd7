import { GatewayError } from "../action/error.ts";
import type { TextPlace } from "./yaml-document.ts";

/** One thing wrong with the configuration. Without a place it is about the file as a whole. */
interface Fault {
  readonly file: string;
  readonly place: TextPlace | null;
  /** `listen.gateway_port`, `keys[0].id`; empty for the document itself. */
  readonly path: string;
  readonly text: string;
}

/** More would help no reader; the rest is counted. */
const maxFaults = 100;

/** Collects every fault of one file, so that the operator reads them all at once. */
export class FaultList {
  readonly #file: string;
  readonly #places = new Map<string, TextPlace>();
  readonly #faults: Fault[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  /** Remembers where `path` stands, for faults found later. */
  mark(path: string, place: TextPlace): void {
    this.#places.set(path, place);
  }

  /** Adds a fault at `place`, or else where `path` or its nearest known ancestor stands. */
  add(path: string, text: string, place?: TextPlace): void {
    this.#faults.push({ file: this.#file, place: place ?? this.#nearest(path), path, text });
  }

  get isEmpty(): boolean {
    return this.#faults.length === 0;
  }

  /** Throws CONFIG_INVALID, or another code where the file is no configuration: one line a fault, in the order of the file; the faults themselves in `data`. */
  throwAll(code: "CONFIG_INVALID" | "INVALID_PARAMS" = "CONFIG_INVALID"): never {
    const ordered = this.#faults.toSorted((a, b) => order(a) - order(b) || column(a) - column(b));
    const faults = ordered.slice(0, maxFaults);
    const lines = faults.map(formatFault);
    const omitted = ordered.length - faults.length;
    if (omitted > 0) lines.push(`and ${omitted} more`);
    throw new GatewayError(code, lines.join("\n"), { data: { faults, omitted } });
  }

  #nearest(path: string): TextPlace | null {
    for (let at = path; at !== ""; at = parentPath(at)) {
      const place = this.#places.get(at);
      if (place !== undefined) return place;
    }
    return this.#places.get("") ?? null;
  }
}

/** `file:line:column: path: text`, without the parts the fault does not have. */
export function formatFault({ file, place, path, text }: Fault): string {
  const where = place === null ? file : `${file}:${place.line}:${place.column}`;
  return path === "" ? `${where}: ${text}` : `${where}: ${escapeInvisible(path.slice(0, maxPath))}: ${text}`;
}

const maxQuote = 64;
/** The schema's own paths are shorter; the operator's keys in them need not be. */
const maxPath = 256;

/** User input as a message may show it: in backticks, nothing invisible or terminal-controlling, at most 64 characters. */
export function quoteInput(text: string): string {
  const cut = text.length > maxQuote ? `${text.slice(0, maxQuote)}…` : text;
  return `\`${escapeInvisible(cut)}\``;
}

/** Replaces all but letters, digits and visible ASCII by their code points: ANSI, bidi and zero-width tricks stay inert. */
export function escapeInvisible(text: string): string {
  return text.replace(/[^\x20-\x5f\x61-\x7e\p{L}\p{N}…]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);
}

function parentPath(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("."), path.lastIndexOf("["), 0));
}

function order(fault: Fault): number {
  return fault.place?.line ?? 0;
}

function column(fault: Fault): number {
  return fault.place?.column ?? 0;
}
