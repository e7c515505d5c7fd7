const longestText = 20_000;
const mostNotes = 1_000;

/** Notes in memory, a few to start with. */
export class NoteBook {
  readonly #notes: Map<string, string> = new Map([
    ["welcome", "This note is kept by the demo upstream. Reading it is allowed by the baseline policy."],
    ["shopping", "Oats, apples, coffee."],
    ["meeting", "Tuesday 10:00: which actions may our agents take without asking?"],
  ]);

  titles(): readonly string[] {
    return [...this.#notes.keys()].sort();
  }

  read(title: string): string | undefined {
    return this.#notes.get(title);
  }

  /** Returns why the note was not kept, or undefined. */
  write(title: string, text: string): string | undefined {
    if (text.length > longestText) return `expected at most ${longestText} characters, got ${text.length}`;
    if (!this.#notes.has(title) && this.#notes.size >= mostNotes) return `expected at most ${mostNotes} notes`;
    this.#notes.set(title, text);
    return undefined;
  }

  /** Returns whether there was such a note. */
  delete(title: string): boolean {
    return this.#notes.delete(title);
  }
}
