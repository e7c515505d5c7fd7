import { FactSet, type Facts } from "./fact-set.ts";

const longestHost = 255;
const longestUrl = 2_048;
const longestScheme = 32;
/** Parsing is what costs; an agent can write a million different URLs of one host. */
const mostTries = 1_000;
/** A user, host and port up to what ends them in any URL. */
const authority = /[^\s\\/?#]*/y;
/** What ends a host in running text, but may stand in the name of a user: `https://good.example;@evil.example`. */
const punctuation = /["'`<>,;|(){}=]/;

/** Gathers the hosts of URLs out of texts. */
export class HostFinder {
  readonly #hosts = new FactSet<string>();
  readonly #tried = new Set<string>();

  /** Looks for the host of the text as one URL, as any client would read it, and of every `scheme://host` in it. */
  look(text: string): void {
    // `https:host` and `ht\ntps:\\host` are URLs too.
    const colon = text.indexOf(":");
    if (colon === -1 || this.#hosts.isFull) return;
    if (colon <= longestScheme && text.length <= longestUrl) this.#try(text);
    for (let mark = text.indexOf("://"); mark !== -1 && !this.#hosts.isFull; mark = text.indexOf("://", mark + 3)) {
      const start = schemeStart(text, mark);
      authority.lastIndex = mark + 3;
      authority.test(text);
      if (start < mark) this.#tryReadings(text.slice(start, authority.lastIndex));
    }
  }

  facts(): Facts<string> {
    return this.#hosts.facts();
  }

  /** A client that is given the whole goes to the host behind the last `@`; other readers stop at punctuation. */
  #tryReadings(url: string): void {
    const end = url.search(punctuation);
    if (end === -1 || url.includes("@", end)) this.#try(url);
    if (end !== -1) this.#try(url.slice(0, end));
  }

  #try(url: string): void {
    if (this.#tried.has(url)) return;
    if (url.length > longestUrl || this.#tried.size === mostTries) {
      this.#hosts.leaveOut();
      return;
    }
    this.#tried.add(url);
    const host = URL.canParse(url) ? new URL(url).host : "";
    if (host.length > longestHost) this.#hosts.leaveOut();
    else if (host !== "") this.#hosts.add(host, host);
  }
}

/** Where the scheme before `mark` begins: at a letter; `mark` where there is none. */
function schemeStart(text: string, mark: number): number {
  let start = mark;
  for (let at = mark - 1; at >= 0 && mark - at <= longestScheme; at -= 1) {
    const character = text.charAt(at);
    if (/[A-Za-z]/.test(character)) start = at;
    else if (!/[0-9+.-]/.test(character)) break;
  }
  return start;
}
