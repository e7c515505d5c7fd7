import type { Json, JsonObject } from "../../action/json.ts";
import { memberPointer } from "../../action/json-pointer.ts";
import type { Turns } from "../../action/turns.ts";
import { OddSearch, oddRanges, type TextRange } from "./plain-text.ts";

/** A text of an answer, and the ranges of it that are read otherwise than they stand. */
export interface OutputText {
  /** JSON Pointer into the answer. */
  readonly pointer: string;
  /** The name of the member, or of the list. */
  readonly name: string;
  readonly text: string;
  readonly odd: readonly TextRange[];
}

/** A part of a list that is read as one text. */
export interface OutputPart {
  readonly pointer: string;
  readonly text: string;
}

/** The places at which a reader sees more in an answer than its texts say one by one. */
export interface OutputScan {
  readonly texts: readonly OutputText[];
  /** Names of members that are read as other names, with the pointer to their object. */
  readonly names: readonly { readonly name: string; readonly pointer: string }[];
  /** Texts that follow each other in a list. */
  readonly lists: readonly (readonly OutputPart[])[];
}

/** Members of a part of a list that are shown as text. */
const shown: ReadonlySet<string> = new Set(["text", "thinking", "refusal", "content", "reasoning"]);
/** Names that are known to be read as they stand. */
const maxPlain = 1_024;
/** Alternatives, which nobody reads as one text. */
const alternatives: ReadonlySet<string> = new Set(["choices", "candidates"]);

/** Returns what must be read again in an answer; undefined where its texts are all that is to be seen. Linear. */
export function scanOutput(output: Json): OutputScan | undefined {
  const scan = new Scan(output);
  scan.run(Number.POSITIVE_INFINITY);
  return scan.result();
}

/** The same, in turns. */
export async function scanOutputInTurns(output: Json, turns: Turns): Promise<OutputScan | undefined> {
  const scan = new Scan(output);
  while (!scan.run(unitsAtOnce)) await turns.spend(unitsAtOnce);
  return scan.result();
}

/** Units of a value beside those of its own text. */
const valueUnits = 16;
/** Units that are gone through between two looks at whether the turn is over. */
const unitsAtOnce = 65_536;

/** A value of an answer that is yet to be looked at, and its place; a pointer is made only where it is needed. */
interface Place {
  readonly value: Json;
  /** Undefined for the answer as a whole. */
  readonly above: Place | undefined;
  readonly name: string;
  /** The name of the member, or of the list. */
  readonly title: string;
  /** The texts of the outermost list around the value. */
  readonly list: Place[] | undefined;
}

/** The names of an object, and the first that is yet to be read. */
interface Names {
  readonly place: Place;
  readonly names: readonly string[];
  at: number;
}

/** A long text that is being searched. */
interface LongText {
  readonly place: Place;
  readonly search: OddSearch;
}

class Scan {
  readonly #texts: OutputText[] = [];
  readonly #names: { name: string; pointer: string }[] = [];
  readonly #lists: Place[][] = [];
  /** Names that are read as they stand: those of rows come again and again. */
  readonly #plain: Set<string> = new Set();
  /** The first is the last. */
  readonly #open: Place[];
  /** Goes on before the next of them. */
  #begun: Names | LongText | undefined;

  constructor(output: Json) {
    this.#open = [{ value: output, above: undefined, name: "", title: "", list: undefined }];
  }

  /** Goes on for about so many units; true at the end. */
  run(maxUnits: number): boolean {
    for (let units = 0; units < maxUnits; units += valueUnits) {
      if (this.#begun !== undefined) {
        units += this.#goOn(this.#begun);
        continue;
      }
      const place = this.#open.pop();
      if (place === undefined) return true;
      const { value } = place;
      if (typeof value === "string") units += this.#text(place, value);
      else if (Array.isArray(value)) this.#items(place, value);
      else this.#members(place, value as JsonObject);
    }
    return false;
  }

  /** Returns the units that were gone through. */
  #goOn(begun: Names | LongText): number {
    if ("search" in begun) {
      if (begun.search.run(unitsAtOnce)) {
        this.#begun = undefined;
        this.#keep(begun.place, begun.search.ranges());
      }
      return unitsAtOnce;
    }
    const name = begun.names[begun.at++];
    if (name === undefined) this.#begun = undefined;
    else this.#name(name, begun.place);
    return name?.length ?? 0;
  }

  result(): OutputScan | undefined {
    const lists = this.#lists.filter(({ length }) => length > 1);
    if (this.#texts.length === 0 && this.#names.length === 0 && lists.length === 0) return undefined;
    return {
      texts: this.#texts,
      names: this.#names,
      lists: lists.map((parts) => parts.map((place) => ({ pointer: pointerOf(place), text: place.value as string }))),
    };
  }

  #members(place: Place, value: JsonObject): void {
    const names = Object.keys(value);
    this.#begun = { place, names, at: 0 };
    for (let at = names.length - 1; at >= 0; at--) {
      const name = names[at] as string;
      const inner = value[name] as Json;
      if (hasText(inner)) this.#open.push({ value: inner, above: place, name, title: name, list: place.list });
    }
  }

  #items(place: Place, items: readonly Json[]): void {
    const { title } = place;
    let { list } = place;
    if (list === undefined && items.length > 0 && !alternatives.has(title)) {
      list = [];
      this.#lists.push(list);
    }
    for (let at = items.length - 1; at >= 0; at--) {
      const value = items[at] as Json;
      if (hasText(value)) this.#open.push({ value, above: place, name: String(at), title, list });
    }
  }

  #name(name: string, place: Place): void {
    if (this.#plain.has(name)) return;
    if (oddRanges(name).length > 0) this.#names.push({ name, pointer: pointerOf(place) });
    else if (this.#plain.size < maxPlain) this.#plain.add(name);
  }

  /** Returns the units that were gone through; the rest of a long text goes on. */
  #text(place: Place, text: string): number {
    const { above, name, title, list } = place;
    const isItem = Array.isArray(above?.value);
    if (list !== undefined && (isItem || (name === title && shown.has(name)))) list.push(place);
    if (text.length > unitsAtOnce) {
      this.#begun = { place, search: new OddSearch(text) };
      return 0;
    }
    this.#keep(place, oddRanges(text));
    return text.length;
  }

  #keep(place: Place, odd: readonly TextRange[]): void {
    if (odd.length > 0)
      this.#texts.push({ pointer: pointerOf(place), name: place.title, text: place.value as string, odd });
  }
}

function hasText(value: Json): boolean {
  return typeof value === "string" ? value !== "" : typeof value === "object" && value !== null;
}

function pointerOf(place: Place): string {
  const names: string[] = [];
  for (let each = place; each.above !== undefined; each = each.above) names.push(each.name);
  return names.reverse().reduce(memberPointer, "");
}
