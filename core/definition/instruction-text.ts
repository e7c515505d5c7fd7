import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";

/** A text in a definition that gives orders to a model. */
export interface Instruction {
  /** The name of its sign. */
  readonly sign: string;
  /** The text around it, at most 160 characters. */
  readonly quote: string;
}

/** The characters in which the next part of a sign is looked for: every search is linear. */
const reach = 70;

const orders =
  /\b(?:sends?|forwards?|uploads?|transmits?|leaks?|exfiltrates?|appends?|includes?|attach|inserts?|puts?|pass|copy|copies|bcc|posts?|provides?|reads?|opens?|cat|loads?|fetch|fetches|access|pastes?|collects?|contents?)\b/g;
const secretFiles =
  /\bid_(?:rsa|ed25519|ecdsa)\b|\.ssh\b|\.aws\/credentials|\.(?:netrc|npmrc|git-credentials|bash_history)\b|\.kube\/config|\.docker\/config\.json|\/etc\/(?:passwd|shadow)\b|\.cursor\/mcp\.json|claude_desktop_config|wallet\.dat/;
const confided =
  /\b(?:conversation|chat history|message history|previous messages|system prompt|credentials|passwords?|private keys?|api keys?|access tokens?|secret keys?|environment variables)\b/;

/**
 * The signs of text that addresses the model rather than describes the tool, in text as `foldText` leaves it. The parts of a
 * sign follow one another: single words of it are in honest descriptions.
 */
const signs: Readonly<Record<string, readonly [RegExp, ...RegExp[]]>> = {
  override: [
    /\b(?:ignore|disregard|forget|override|bypass)\b/g,
    /^.{0,30}\b(?:previous|prior|above|earlier|preceding|all|any|other|system|safety|your)\b/s,
    /^.{0,24}\b(?:instructions?|rules|prompts?|guidelines|directions|restrictions|policy|policies|safeguards|commands)\b/s,
  ],
  tag: [
    /<\s?\/?\s?(?:important|system|secret|hidden|instructions?|admin|critical|override|sys|assistant|developer)\s?>|<<\s?sys\s?>>|\[\/?inst\]|<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|###\s?(?:system|instruction)s?\s?:/g,
  ],
  role: [
    /(?:^|\n) ?(?:system|assistant|developer) (?:message|prompt|note|override) ?: ?\S|\n ?(?:system|assistant) ?: ?\S/g,
  ],
  secrecy: [
    /\b(?:do not|don't|dont|never|must not|should not|without|avoid|refrain from)\b/g,
    /^.{0,20}\b(?:tell|telling|inform|informing|mention|mentioning|notify|notifying|reveal|revealing|disclose|disclosing|alert|alerting|show|showing|warn|warning|asking|explain|explaining)\b/s,
    /^.{0,30}\b(?:users?|humans?|operator|customer|anyone|anybody)\b/s,
  ],
  silence: [
    /\b(?:silently|secretly|covertly|quietly|in secret|behind the scenes)\b/g,
    /^.{0,40}\b(?:send|read|pass|copy|forward|include|append|upload|call|execute|run|add|bcc|collect|store|delete|fetch|post)\b/s,
  ],
  hiding: [
    /\b(?:keep|this is|stays?|remain)\b/g,
    /^.{0,24}\b(?:secret|hidden|confidential|invisible)\b/s,
    /^.{0,24}\b(?:from|to)\b.{0,12}\b(?:users?|humans?|operators?)\b/s,
  ],
  secret_file: [orders, secretFiles],
  precondition: [
    /\b(?:before|prior to|after|when|whenever|each time|every time)\b/g,
    /^.{0,24}\b(?:use|uses|using|call|calls|calling|invoke|invokes|invoking|run|runs|running|execute|executing)\b/s,
    /^.{0,24}\btools?\b/s,
    /\b(?:read|open|cat|send|fetch|include|pass|provide|forward|upload|append|copy|collect)\b/,
    /\b(?:files?|keys?|tokens?|secrets?|credentials?|config(?:uration)?|conversation|history|passwords?|env)\b/,
  ],
  confidence: [
    /\b(?:send|forward|upload|transmit|leak|exfiltrate|append|include|attach|insert|put|pass|copy|bcc|post)\b/g,
    /^.{0,24}\b(?:whole|full|entire|complete|all|user's|users|your|the|any)\b/s,
    confided,
    /^.{0,40}\b(?:in|into|to|as|inside|with|via|through)\b/s,
  ],
  every_call: [
    /\b(?:must|always|required to|mandatory|need to|have to)\b/g,
    /^.{0,24}\b(?:call|use|invoke|run|execute|called|used|invoked|executed)\b/s,
    /^.{0,24}\b(?:first|before|prior to|after)\b/s,
    /^.{0,24}\b(?:any|every|all|each)\b.{0,12}\b(?:other|tools?|actions?|response|message)\b/s,
  ],
  redirect: [
    /\b(?:all|any|every|each)\b/g,
    /^.{0,24}\b(?:emails?|mails?|messages?|payments?|transfers?|transactions?|invoices?)\b/s,
    /^.{0,40}\b(?:must|should|has to|have to|need to|needs to)\b/s,
    /^.{0,24}\b(?:sent|send|go|forwarded|routed|copied|redirected|addressed|paid)\b/s,
    /^.{0,24}\bto\b/s,
  ],
  impersonation: [
    /\b(?:you are now|from now on,? you|act as (?:an?|the) (?:unrestricted|unfiltered|admin|root|system)|new (?:system )?instructions? ?:|jailbreak)\b/g,
  ],
  preference: [
    /\b(?:do not|don't|never|stop)\b/g,
    /^.{0,12}\b(?:use|using|call|calling|trust)\b/s,
    /^.{0,24}\b(?:any|the|all)\b.{0,12}\b(?:other|official|original)\b.{0,24}\b(?:tools?|servers?|versions?)\b/s,
  ],
};

/** Signs in the text as it is written, which `foldText` would remove. */
const hiddenSigns: Readonly<Record<string, RegExp>> = {
  tag_characters: /[\u{e0000}-\u{e007f}]/u,
  direction_override: /[\u202a-\u202e\u2066-\u2069]/,
  zero_width: /[A-Za-z][\u200b-\u200d\u2060\u2063\ufeff]+[A-Za-z]|[\u200b-\u200d\u2060-\u2064\ufeff]{4}/,
  variation_selectors: /[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]{3}/u,
  control: /(?![\t\n\r])\p{Cc}/u,
  encoded: /(?:^|[^A-Za-z0-9+/])(?![0-9a-f]+(?:[^0-9a-z]|$))[A-Za-z0-9+/]{160,}/,
};

/** Characters that are searched before other work runs: of hostile ones about 3 ms. */
const windowLength = 16_384;
/** More than a whole sign takes. */
const overlap = 1_024;

/**
 * Finds the first text in a definition, of any member at any depth, names of members included, that gives orders to a model,
 * or that hides text from people. Linear; calls `pause` after every 16,384 characters or so.
 */
export async function findInstruction(
  definition: JsonObject,
  pause: () => Promise<void>,
): Promise<Instruction | undefined> {
  let searched = 0;
  for (const text of textsIn(definition)) {
    // An icon is an image in base64, shown as one.
    if (/^data:image\/[a-z+.-]+;base64,/.test(text)) continue;
    for (let from = 0; from < text.length; from += windowLength) {
      const window = text.slice(Math.max(0, from - overlap), from + windowLength);
      const found = signIn(window);
      if (found !== undefined) return found;
      searched += window.length;
      if (searched < windowLength) continue;
      searched = 0;
      await pause();
    }
  }
  return undefined;
}

function signIn(text: string): Instruction | undefined {
  for (const [sign, pattern] of Object.entries(hiddenSigns)) {
    const at = text.search(pattern);
    if (at !== -1) return { sign, quote: quoteAt(text, at) };
  }
  const folded = foldText(text);
  for (const [sign, parts] of Object.entries(signs)) {
    const at = indexOfSign(folded, parts);
    if (at !== -1) return { sign, quote: quoteAt(folded, at) };
  }
  return undefined;
}

/** Returns the first index of a text from which the parts follow one another, each within reach of the one before; else -1. */
function indexOfSign(text: string, [first, ...rest]: readonly [RegExp, ...RegExp[]]): number {
  for (const { 0: match, index } of text.matchAll(first)) {
    let end = index + match.length;
    const isWhole = rest.every((part) => {
      const found = part.exec(text.slice(end, end + reach));
      end += found === null ? 0 : found.index + found[0].length;
      return found !== null;
    });
    if (isWhole) return index;
  }
  return -1;
}

function quoteAt(text: string, at: number): string {
  return text.slice(Math.max(0, at - 20), at + 140);
}

/** Every text of a definition, breadth first, and the names of its members. */
export function textsIn(definition: JsonObject): readonly string[] {
  const texts: string[] = [];
  const waiting: Json[] = [definition];
  for (const value of waiting) {
    if (typeof value === "string") texts.push(value);
    else if (Array.isArray(value)) for (const item of value) waiting.push(item);
    else if (isJsonObject(value)) {
      for (const [name, member] of Object.entries(value)) waiting.push(name, member);
    }
  }
  return texts;
}

/** Letters of other scripts that are taken for these: a text in mixed scripts is read as a person reads it. */
const lookAlikes: Readonly<Record<string, string>> = {
  ...{ а: "a", в: "b", с: "c", ԁ: "d", е: "e", ɡ: "g", һ: "h", н: "h", і: "i", ј: "j", к: "k", м: "m", о: "o" },
  ...{ р: "p", ѕ: "s", т: "t", у: "y", х: "x", α: "a", ε: "e", ι: "i", κ: "k", ν: "v", ο: "o", ρ: "p", τ: "t" },
  ...{ υ: "u", χ: "x", ı: "i" },
};
const foldable = /[\u0131\u0261\u0370-\u03ff\u0400-\u052f]/g;

/** Text as it is read: compatibility forms and look-alikes as plain letters, in lower case, blanks as one. */
export function foldText(text: string): string {
  const plain = /^[\x20-\x7e]*$/.test(text) ? text : text.normalize("NFKC");
  return plain
    .toLowerCase()
    .replace(foldable, (letter) => lookAlikes[letter] ?? letter)
    .replace(/[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]/g, "")
    .replace(/[\u2018\u2019\u02bc]/g, "'")
    .replace(/[^\S\n]+/g, " ");
}
