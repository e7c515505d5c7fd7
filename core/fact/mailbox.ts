import { domainToASCII } from "node:url";
import { readHostName } from "./host-name.ts";
import { hasUnseen, misleads } from "./name-sign.ts";

/** One mailbox of a text, with its name and comments left out. */
export interface Mailbox {
  readonly plain: string;
  readonly odd: boolean;
}

/** Reads `Name <local@domain>` or `local@domain`; undefined where the text is none, or several. */
export function readMailbox(text: string): Mailbox | undefined {
  const parts = splitMailbox(text);
  if (parts === undefined) return undefined;
  const at = lastAt(parts.address);
  const local = readLocal(parts.address.slice(0, at));
  const domain = readDomain(parts.address.slice(at + 1));
  if (at === -1 || local === undefined || domain === undefined) return undefined;
  const odd = parts.odd || local.odd || domain.odd;
  return { plain: `${local.plain}@${domain.plain}`, odd };
}

interface Parts {
  readonly address: string;
  readonly odd: boolean;
}

/** Takes the name, the angle brackets and the comments off an address, reading quotes as RFC 5322 has them. */
function splitMailbox(text: string): Parts | undefined {
  const { bare, comments } = withoutComments(text);
  const open = outsideQuotes(bare, "<");
  if (open === -1) return { address: bare.trim(), odd: comments };
  const close = bare.indexOf(">", open);
  if (close === -1 || bare.slice(close + 1).trim() !== "") return undefined;
  const name = bare.slice(0, open);
  // A name that looks like an address is what people read in its place.
  return { address: bare.slice(open + 1, close).trim(), odd: comments || /[@<>\uff20\ufe6b]|=\?/.test(name) };
}

/** Returns the text without `(…)`, nested or not, outside of quotes. */
function withoutComments(text: string): { readonly bare: string; readonly comments: boolean } {
  let bare = "";
  let depth = 0;
  let quoted = false;
  for (const [token] of text.matchAll(/\\[\s\S]|[\s\S]/g)) {
    if (token === '"' && depth === 0) quoted = !quoted;
    if (token === "(" && !quoted) depth++;
    else if (depth === 0) bare += token;
    else if (token === ")") depth--;
  }
  return { bare, comments: bare.length !== text.length };
}

/** Returns the offset of a mark outside of quotes, or -1. */
function outsideQuotes(text: string, mark: string): number {
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (quoted && character === "\\") at++;
    else if (character === '"') quoted = !quoted;
    else if (!quoted && character === mark) return at;
  }
  return -1;
}

/** Returns the offset of the `@` before the domain, or -1. */
function lastAt(address: string): number {
  return address.lastIndexOf("@");
}

const dotAtom = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const maxLocal = 64;

/** Reads the part before `@` in lower case, its tag kept; quotes around what needs none are taken off. */
function readLocal(text: string): Mailbox | undefined {
  if (text === "" || text.length > 4 * maxLocal) return undefined;
  const written = text.normalize("NFKC");
  const local = written.toLowerCase();
  const changed = written !== text || text.length > maxLocal;
  if (local.startsWith('"')) return readQuoted(local, changed);
  if (/[\s"(),:;<>@[\\\]]/.test(local)) return undefined;
  const letters = local.replace(/[\p{L}\p{M}\p{N}]/gu, "a");
  if (!dotAtom.test(letters)) return { plain: local, odd: true };
  // Relays of old send `user%host@relay` and `host!user@relay` on.
  return { plain: local, odd: changed || /[%!]|=\?/.test(local) || hasUnseen(local) || misleads(local) };
}

function readQuoted(local: string, changed: boolean): Mailbox | undefined {
  if (!/^"(?:[^"\\]|\\.)*"$/.test(local)) return undefined;
  const inner = local.slice(1, -1).replace(/\\(.)/g, "$1");
  const isPlain = dotAtom.test(inner) && !/[%!]/.test(inner);
  return isPlain ? { plain: inner, odd: changed } : { plain: local, odd: true };
}

function readDomain(text: string): Mailbox | undefined {
  if (text === "" || /[\s<>,;@"]/.test(text)) return undefined;
  if (text.startsWith("[")) return { plain: text.toLowerCase(), odd: true };
  const written = text.toLowerCase().replace(/\.$/, "");
  const ascii = domainToASCII(written);
  if (ascii === "") return { plain: written, odd: true };
  // What is neither ASCII nor in its plain form is read otherwise by readers of other editions of IDNA.
  const changed = written.length !== text.length || written.normalize("NFKC") !== written || /[ßς]/.test(written);
  const isAscii = /^[ -~]*$/.test(written);
  return { plain: ascii, odd: changed || (isAscii && ascii !== written) || readHostName(ascii).odd };
}
