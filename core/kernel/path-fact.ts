import { FactSet, type Facts } from "./fact-set.ts";

const longestPath = 1_024;
/** What parts words in running text, in a command, in an assignment (`--out=/etc/x`, `-d @/etc/x`). */
const betweenWords = "\t\n\v\f\r \u00a0\"'`<>|;&(){}=,@";
/** 1 at their character codes, all below 256: a set asked for each character of a text takes more than twice as long. */
const isBetween = new Uint8Array(256);
for (const character of betweenWords) isBetween[character.charCodeAt(0)] = 1;

/** Gathers paths that lead out of where an action is at home: absolute ones, and those that climb. */
export class PathFinder {
  readonly #whole = new FactSet<string>();
  readonly #words = new FactSet<string>();

  /** Looks at a text as one path, blanks and all; where it is none, at each of its words. */
  look(text: string): void {
    if (this.#whole.isFull) return;
    if (text.length <= longestPath && isAbsolute(text) && !/[\r\n]/.test(text)) {
      this.#whole.add(text, text);
      return;
    }
    if (!this.#words.isFull && /[/\\~]|\.\./.test(text)) this.#lookAtWords(text);
  }

  /** Texts that are a path come before words that are. */
  facts(): Facts<string> {
    const all = new FactSet<string>();
    const [whole, words] = [this.#whole.facts(), this.#words.facts()];
    for (const path of [...whole.items, ...words.items]) all.add(path, path);
    if (whole.more || words.more) all.leaveOut();
    return all.facts();
  }

  #lookAtWords(text: string): void {
    let start = 0;
    for (let at = 0; at <= text.length; at += 1) {
      if (at < text.length && isBetween[text.charCodeAt(at)] !== 1) continue;
      if (at > start) this.#addWord(text.slice(start, at), at - start === text.length);
      start = at + 1;
    }
  }

  #addWord(word: string, isText: boolean): void {
    const path = /^file:/i.test(word) && URL.canParse(word) ? new URL(word).pathname : word;
    if (!isAbsolute(path) && !climbs(path)) return;
    const facts = isText ? this.#whole : this.#words;
    if (path.length > longestPath) facts.leaveOut();
    else facts.add(path, path);
  }
}

/** From a root, a drive, a share or somebody's home. */
function isAbsolute(path: string): boolean {
  return path.startsWith("/") || path.startsWith("\\\\") || path === "~" || /^(?:~[\w.-]*|[A-Za-z]:)[\\/]/.test(path);
}

function climbs(path: string): boolean {
  return !path.includes("://") && /(?:^|[\\/])\.\.(?:[\\/]|$)/.test(path);
}
