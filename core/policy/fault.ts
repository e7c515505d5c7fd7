import { GatewayError } from "../action/error.ts";

/** Where something stands in a pack: a path inside its folder, line and column counted from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** One thing wrong with a pack. */
interface Fault extends Place {
  readonly message: string;
}

/** What is wrong: a pack, a plugin, or a file somebody asks with. */
export type FaultCode = "PACK_INVALID" | "PLUGIN_INVALID" | "INVALID_REQUEST";

/** Faults beyond this many are counted, not listed. */
const maxListed = 100;

/** Collects every fault of a pack, so that its author sees them all at once. */
export class Faults {
  readonly #list: Fault[] = [];

  add(place: Place, message: string): void {
    this.#list.push({ file: place.file, line: place.line, column: place.column, message });
  }

  get count(): number {
    return this.#list.length;
  }

  /** Throws `code` with one `file:line:column: message` a line; `data.faults` holds the same as data. */
  throwIfAny(pack: string, code: FaultCode = "PACK_INVALID"): void {
    if (this.#list.length === 0) return;
    const listed = this.#list.toSorted(byPlace).slice(0, maxListed);
    const lines = listed.map((fault) => `${fault.file}:${fault.line}:${fault.column}: ${fault.message}`);
    if (this.#list.length > maxListed) lines.push(`and ${this.#list.length - maxListed} more`);
    throw new GatewayError(code, `\`${pack}\`\n${lines.join("\n")}`, { data: { faults: listed } });
  }
}

function byPlace(a: Fault, b: Fault): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return a.line - b.line || a.column - b.column;
}
