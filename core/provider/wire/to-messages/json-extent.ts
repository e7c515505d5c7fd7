/** Finds the end of one JSON object in a text that comes in pieces, without reading any of it twice. */
export class JsonExtent {
  #depth = 0;
  #begun = false;
  #inString = false;
  #escaped = false;

  push(text: string): void {
    for (const character of text) {
      if (this.#inString) this.#pushInString(character);
      else if (character === '"') this.#inString = true;
      else if (character === "{" || character === "[") {
        this.#depth++;
        this.#begun = true;
      } else if (character === "}" || character === "]") this.#depth--;
    }
  }

  /** Whether the object has ended: only blanks may follow. */
  get closed(): boolean {
    return this.#begun && this.#depth <= 0;
  }

  #pushInString(character: string): void {
    if (this.#escaped) this.#escaped = false;
    else if (character === "\\") this.#escaped = true;
    else if (character === '"') this.#inString = false;
  }
}
