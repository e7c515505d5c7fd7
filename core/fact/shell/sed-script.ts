import { type ActionEffect, strictestEffect } from "../../action/action-fact.ts";

/** Returns the effect of sed with these words: of its flags, and of every command of its scripts. */
export function sedEffect(texts: readonly string[]): ActionEffect {
  const effects: ActionEffect[] = [];
  const scripts: string[] = [];
  for (let at = 0; at < texts.length; at += 1) {
    const text = texts[at] ?? "";
    if (text === "--") {
      pushFirst(scripts, texts[at + 1]);
      break;
    }
    if (!text.startsWith("-") || text === "-") {
      // A sed that looks for no options behind words takes the first word as the script, whatever -e follows.
      pushFirst(scripts, text);
    } else if (/^-[nErsuz]*e$/.test(text) || text === "--expression") scripts.push(texts[++at] ?? "w");
    else if (text.startsWith("--expression=")) scripts.push(text.slice("--expression=".length));
    else effects.push(flagEffect(text));
  }
  return strictestEffect([...effects, ...scripts.map((script) => new SedScript(script).effect())]);
}

function pushFirst(scripts: string[], text: string | undefined): void {
  if (scripts.length === 0) scripts.push(text ?? "");
}

const longs = [
  "--quiet",
  "--silent",
  "--regexp-extended",
  "--separate",
  "--unbuffered",
  "--null-data",
  "--debug",
  "--posix",
  "--sandbox",
  "--help",
  "--version",
];

function flagEffect(text: string): ActionEffect {
  if (/^-[nErsuz]+$/.test(text) || longs.includes(text)) return "read";
  if (/^-[nErsuz]*[iI]/.test(text) || /^--in/.test(text)) return "write";
  return "execute";
}

/** Reads a script command by command; what it cannot read is `unknown`. */
class SedScript {
  readonly #text: string;
  #at = 0;
  #effect: ActionEffect = "read";

  constructor(text: string) {
    this.#text = text;
  }

  effect(): ActionEffect {
    while (this.#at < this.#text.length) {
      if (!this.#skip(/[\s;{}]+/y) && !this.#readCommand()) return "unknown";
    }
    return this.#effect;
  }

  #readCommand(): boolean {
    if (!this.#readAddresses()) return false;
    const command = this.#text[this.#at] ?? "";
    this.#at += 1;
    if (command === "{") return true;
    if ("pPdDqQ=gGhHnNxlFz".includes(command)) return this.#skip(/[ \t\d]*(?=$|[;}\n])/y);
    if (command === "s") return this.#readSubstitution();
    if (command === "y") return this.#readDelimited() !== null && this.#skip(/[ \t]*(?=$|[;}\n])/y);
    if ("btT:".includes(command)) return this.#skip(/[ \t\w]*(?=$|[;}\n])/y);
    if ("wW".includes(command)) this.#raise("write");
    else if (command === "e") this.#raise("execute");
    else if (!"raic#".includes(command) || command === "") return false;
    // The rest of the line is a text or the name of a file.
    const rest = this.#text.slice(this.#at);
    if ("aic".includes(command) && rest.includes("\n")) return false;
    return this.#skip(/[^\n]*/y);
  }

  #readAddresses(): boolean {
    if (!this.#readAddress()) return false;
    if (this.#skip(/\s*,\s*[~+]?/y) && !this.#readAddress()) return false;
    this.#skip(/\s*!?\s*/y);
    return true;
  }

  #readAddress(): boolean {
    if (this.#skip(/\d+(?:~\d+)?|\$/y)) return true;
    const custom = this.#text[this.#at] === "\\";
    if (!custom && this.#text[this.#at] !== "/") return true;
    this.#at += custom ? 1 : 0;
    const delimiter = this.#text[this.#at] ?? "\n";
    this.#at += 1;
    if (!this.#readUntil(delimiter)) return false;
    this.#skip(/[IM]*/y);
    return true;
  }

  #readSubstitution(): boolean {
    const flags = this.#readDelimited();
    if (flags === null) return false;
    const start = this.#at;
    this.#skip(/[gpiImMe0-9]*/y);
    if (this.#text.slice(start, this.#at).includes("e")) this.#raise("execute");
    if (this.#text[this.#at] === "w") {
      this.#raise("write");
      return this.#skip(/[^\n]*/y);
    }
    return this.#skip(/[ \t]*(?=$|[;}\n])/y);
  }

  /** Reads `/a/b/` with any delimiter. */
  #readDelimited(): string | null {
    const delimiter = this.#text[this.#at] ?? "\n";
    if (delimiter === "\n" || delimiter === "\\") return null;
    this.#at += 1;
    return this.#readUntil(delimiter) && this.#readUntil(delimiter) ? delimiter : null;
  }

  /** A delimiter within brackets is read differently by different programs: such a script cannot be read. */
  #readUntil(delimiter: string): boolean {
    let bracket = -1;
    for (; this.#at < this.#text.length; this.#at += 1) {
      const char = this.#text[this.#at];
      if (char === "\\") this.#at += 1;
      else if (char === delimiter) {
        this.#at += 1;
        return bracket === -1;
      } else if (char === "[" && bracket === -1) bracket = this.#at;
      else if (char === "]" && bracket !== -1) bracket = -1;
    }
    return false;
  }

  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) return false;
    this.#at += found[0].length;
    return true;
  }

  #raise(effect: ActionEffect): void {
    this.#effect = strictestEffect([this.#effect, effect]);
  }
}
