import { isJsonObject, type Json } from "../../action/json.ts";
import { memberPointer } from "../../action/json-pointer.ts";
import { oddRanges, type TextRange } from "./plain-text.ts";

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
  const scan = new Scan();
  scan.visit(output, undefined, "", undefined);
  return scan.result();
}

/** A place in an answer; its pointer is made only where it is needed. */
interface Place {
  readonly above: Place | undefined;
  readonly name: string;
}

type List = { readonly place: Place | undefined; readonly text: string }[];

class Scan {
  readonly #texts: OutputText[] = [];
  readonly #names: { name: string; pointer: string }[] = [];
  readonly #lists: List[] = [];
  /** Names that are read as they stand: those of rows come again and again. */
  readonly #plain: Set<string> = new Set();

  /** `list`: the texts of the outermost list around the value. */
  visit(value: Json, place: Place | undefined, name: string, list: List | undefined): void {
    if (typeof value === "string") this.#text(value, place, name, list);
    else if (Array.isArray(value)) this.#list(value, place, name, list);
    else if (isJsonObject(value)) {
      for (const member in value) {
        this.#name(member, place);
        const inner = value[member];
        const isText = typeof inner === "string" && inner !== "";
        if (isText || (typeof inner === "object" && inner !== null))
          this.visit(inner, { above: place, name: member }, member, list);
      }
    }
  }

  result(): OutputScan | undefined {
    const lists = this.#lists.filter(({ length }) => length > 1);
    if (this.#texts.length === 0 && this.#names.length === 0 && lists.length === 0) return undefined;
    return {
      texts: this.#texts,
      names: this.#names,
      lists: lists.map((parts) => parts.map(({ place, text }) => ({ pointer: pointerOf(place), text }))),
    };
  }

  #list(items: readonly Json[], place: Place | undefined, name: string, outer: List | undefined): void {
    let list = outer;
    if (list === undefined && items.length > 0 && !alternatives.has(name)) {
      list = [];
      this.#lists.push(list);
    }
    items.forEach((item, index) => {
      if (item === null || item === "" || typeof item === "number") return;
      const itemPlace = { above: place, name: String(index) };
      if (typeof item === "string") list?.push({ place: itemPlace, text: item });
      this.visit(item, itemPlace, name, list);
    });
  }

  #name(name: string, place: Place | undefined): void {
    if (this.#plain.has(name)) return;
    if (oddRanges(name).length > 0) this.#names.push({ name, pointer: pointerOf(place) });
    else if (this.#plain.size < maxPlain) this.#plain.add(name);
  }

  #text(text: string, place: Place | undefined, name: string, list: List | undefined): void {
    if (list !== undefined && place !== undefined && place.name === name && shown.has(name)) list.push({ place, text });
    const odd = oddRanges(text);
    if (odd.length > 0) this.#texts.push({ pointer: pointerOf(place), name, text, odd });
  }
}

function pointerOf(place: Place | undefined): string {
  const names: string[] = [];
  for (let each = place; each !== undefined; each = each.above) names.push(each.name);
  return names.reverse().reduce(memberPointer, "");
}
