import { type CelValue, isCelList, isCelMap } from "@bufbuild/cel";

/** UTF-16 code units after which nothing more is written; `showText` cuts before that. */
const longestWritten = 1_024;
/** Items and members of one list or map. */
const mostItems = 64;
const deepest = 3;

/**
 * A value as text: lists and maps three levels deep, texts in them between quotes. Stops where a reader is shown no more
 * of it anyway, so a vast value costs no more than a large one. To be passed through `showText`.
 */
export function writeValue(value: CelValue): string {
  const writer = new ValueWriter();
  writer.write(value, deepest);
  return writer.text;
}

class ValueWriter {
  text = "";

  write(value: CelValue, levels: number): void {
    if (typeof value === "string") this.text += JSON.stringify(value.slice(0, longestWritten));
    else if (isCelList(value)) this.#list(value, levels);
    else if (isCelMap(value)) this.#map(value, levels);
    else this.text += typeof value === "object" && value !== null ? "[value]" : String(value);
  }

  #list(items: Iterable<CelValue>, levels: number): void {
    if (levels === 0) this.text += "[…]";
    else this.#enclose("[", items, "]", (item) => this.write(item, levels - 1));
  }

  #map(members: Iterable<readonly [unknown, CelValue]>, levels: number): void {
    if (levels === 0) {
      this.text += "{…}";
      return;
    }
    this.#enclose("{", members, "}", ([name, item]) => {
      this.text += `${String(name)}: `;
      this.write(item, levels - 1);
    });
  }

  #enclose<T>(open: string, items: Iterable<T>, close: string, write: (item: T) => void): void {
    this.text += open;
    let count = 0;
    for (const item of items) {
      if (count > 0) this.text += ", ";
      if (count === mostItems || this.text.length > longestWritten) {
        this.text += "…";
        break;
      }
      write(item);
      count++;
    }
    this.text += close;
  }
}
