import { randomInt } from "node:crypto";
import type { ActionEnvelope } from "../action/envelope.ts";
import type { Json } from "../action/json.ts";
import { percentDecoded } from "../fact/named-value.ts";
import { leafTexts } from "./action-value.ts";

/** Characters of a piece that is recognized; shorter ones are not. */
const gramLength = 8;
const maxSecrets = 32;
/** Characters of a secret that are followed, from its beginning. */
const maxSecretLength = 2_048;
/** Bounds the digests of all secrets and their forms. */
const maxGrams = 32_768;
/** Characters of an answer, or of the arguments of an action, that are searched. */
const maxSearched = 1_048_576;
/** Characters of a long secret that count as all of it. */
const wholeLength = 64;

interface KnownSecret {
  /** 1 for each character that left. */
  readonly left: Uint8Array;
  readonly grams: readonly number[];
}

interface Gram {
  readonly secret: KnownSecret;
  /** The first character of the secret that the gram stands for, and the one behind the last. */
  readonly start: number;
  readonly end: number;
}

/**
 * The secrets that answers told the sessions of a principal, and what of them left again. Kept in memory alone, as digests of each
 * eight characters in a row, under a key of the process: of the secret, of its base64 and of its hexadecimal digits.
 */
export class SecretTrail {
  readonly #grams = new Map<number, Gram>();
  readonly #secrets = new Set<KnownSecret>();
  readonly #seeds = [randomInt(2 ** 32), randomInt(2 ** 32)] as const;

  /** Approximate bytes in memory. */
  get size(): number {
    return 128 * this.#grams.size;
  }

  /** Remembers what looks like a secret in an answer that tells one. Of more than there is room for the oldest is forgotten. */
  learn(output: Json): void {
    let left = maxSearched;
    for (const { text } of leafTexts(output)) {
      for (const secret of secretsIn(text.slice(0, left))) this.#add(secret.slice(0, maxSecretLength));
      left -= text.length;
      if (left <= 0) return;
    }
  }

  #add(secret: string): void {
    const grams: number[] = [];
    const known: KnownSecret = { left: new Uint8Array(secret.length), grams };
    for (const { text, charsPerByte, shift } of formsOf(secret)) {
      this.#eachGram(text, (digest, at) => {
        if (this.#grams.has(digest)) return;
        const start = Math.max(0, Math.floor(at / charsPerByte) - shift);
        const end = Math.min(secret.length, Math.ceil((at + gramLength) / charsPerByte) - shift);
        this.#grams.set(digest, { secret: known, start, end });
        grams.push(digest);
      });
    }
    if (grams.length === 0) return;
    this.#secrets.add(known);
    for (const oldest of this.#secrets) {
      if (this.#secrets.size <= maxSecrets && this.#grams.size <= maxGrams) return;
      this.#secrets.delete(oldest);
      for (const digest of oldest.grams) this.#grams.delete(digest);
    }
  }

  /**
   * Counts what of the secrets an action carries away, and returns how much of one has left so far, in percent: of a secret of more
   * than 64 characters, in percent of 64. What is repeated is counted once.
   */
  count({ arguments: args, facts, protocol, phase }: ActionEnvelope): number {
    const leaves = facts === undefined || facts.effect !== "read" || facts.hosts.length > 0 || facts.more;
    if (!leaves || protocol === "model" || phase === "list") return 0;
    const touched = new Set<KnownSecret>();
    let left = maxSearched;
    for (const { text } of leafTexts(args)) {
      this.#eachGram(normalized(percentDecoded(text.slice(0, left), 1)), (digest) => {
        const gram = this.#grams.get(digest);
        if (gram === undefined) return;
        gram.secret.left.fill(1, gram.start, gram.end);
        touched.add(gram.secret);
      });
      left -= text.length;
      if (left <= 0) break;
    }
    return Math.max(0, ...Array.from(touched, percentOf));
  }

  #eachGram(text: string, visit: (digest: number, at: number) => void): void {
    const [first, second] = this.#seeds;
    for (let at = 0; at + gramLength <= text.length; at++) {
      let [one, two] = [first, second];
      for (let each = at; each < at + gramLength; each++) {
        const code = text.charCodeAt(each);
        one = Math.imul(one ^ code, 0x01000193);
        two = Math.imul(two ^ code, 0x5bd1e995) + 1;
      }
      visit((one >>> 0) * 0x10000 + ((two >>> 8) & 0xffff), at);
    }
  }
}

function percentOf({ left }: KnownSecret): number {
  let count = 0;
  for (const each of left) count += each;
  return Math.floor((100 * count) / Math.min(left.length, wholeLength));
}

const privateKey = /-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY-----([^-]{16,16384})/g;
const token = /[A-Za-z0-9+/_-]{16,}/g;

/** The bodies of private keys, and words that look random. */
function secretsIn(text: string): readonly string[] {
  const bodies = Array.from(text.matchAll(privateKey), ([, body = ""]) => body.replace(/\s|\\[nr]/g, ""));
  const words = Array.from(text.replace(privateKey, " ").matchAll(token), ([word]) => word);
  return [...bodies, ...words.filter(looksRandom)].slice(0, maxSecrets);
}

/** Returns true for words that change between digits and letters, or the case of letters, as no name and no path does. */
function looksRandom(word: string): boolean {
  let changes = 0;
  for (let at = 1; at < word.length; at++) {
    const [before, here] = [kindOf(word.charCodeAt(at - 1)), kindOf(word.charCodeAt(at))];
    if (before !== 0 && here !== 0 && before !== here) changes++;
  }
  return /\d/.test(word) && changes >= Math.max(2, Math.floor(word.length / 12));
}

/** Returns 1 for a digit, 2 for a capital, 3 for a small letter, 0 for others. */
function kindOf(code: number): number {
  if (code >= 48 && code <= 57) return 1;
  if (code >= 65 && code <= 90) return 2;
  return code >= 97 && code <= 122 ? 3 : 0;
}

/** Base64 and its form for URLs are one. */
function normalized(text: string): string {
  return text.replaceAll("-", "+").replaceAll("_", "/");
}

interface SecretForm {
  readonly text: string;
  /** Characters of the form for one of the secret. */
  readonly charsPerByte: number;
  /** Bytes before the secret. */
  readonly shift: number;
}

function formsOf(secret: string): readonly SecretForm[] {
  const base64 = [0, 1, 2].map((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)]);
    return { text: normalized(bytes.toString("base64url")), charsPerByte: 4 / 3, shift };
  });
  return [
    { text: normalized(secret), charsPerByte: 1, shift: 0 },
    ...base64,
    { text: Buffer.from(secret).toString("hex"), charsPerByte: 2, shift: 0 },
  ];
}
