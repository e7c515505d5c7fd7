import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";
import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { canonicalJson, contentDigest, sha256Hex } from "../../action/canonical-json.ts";
import type { Random } from "../../action/id.ts";
import { bytePieces, textPieces } from "../../action/json-pieces.ts";

const secretBytes = 32;
const formatName = "evidence-wrapping-key-v1";

/**
 * The secrets of a chain: the key that the data key of each private entry is derived from, or that earlier versions wrapped
 * it with, and the secret that keeps fingerprints from being guessed. Losing this key loses every entry.
 */
export class WrappingKey {
  readonly #wrapping: Uint8Array;
  readonly #secret: string;

  private constructor(wrapping: Uint8Array, secret: Uint8Array) {
    this.#wrapping = wrapping;
    this.#secret = Buffer.from(secret).toString("base64url");
  }

  static generate(random: Random): WrappingKey {
    // Copies: what `random` hands out may be a piece of a larger pool.
    return new WrappingKey(Uint8Array.from(random(cipherKeyBytes)), Uint8Array.from(random(secretBytes)));
  }

  /** Parses the file of `chain`; undefined for a damaged one and for that of another chain. */
  static parse(text: string, chain: string): WrappingKey | undefined {
    const [line = "", checksum, ...rest] = text.split("\n");
    if (checksum !== sha256Hex(line) || rest.join() !== "") return undefined;
    const [format, owner, wrapping = "", secret = ""] = line.split(" ");
    const keys = [wrapping, secret].map((each) => Buffer.from(each, "base64url"));
    const [key, chainSecret] = keys as [Buffer, Buffer];
    if (format !== formatName || owner !== chain || key.length !== cipherKeyBytes) return undefined;
    return chainSecret.length === secretBytes ? new WrappingKey(key, chainSecret) : undefined;
  }

  /** The text of its file: a secret. A checksum detects a flipped bit before anything is sealed with the key. */
  toText(chain: string): string {
    const line = `${formatName} ${chain} ${Buffer.from(this.#wrapping).toString("base64url")} ${this.#secret}`;
    return `${line}\n${sha256Hex(line)}\n`;
  }

  /** Derives the data key of a place: HMAC-SHA-256 over its purpose and record. It is stored nowhere. */
  dataKey(place: string): Uint8Array {
    return createHmac("sha256", this.#wrapping).update(place).digest();
  }

  /** Encrypts a secret for the store; `place` binds it to its record. */
  wrap(dataKey: Uint8Array, place: string, random: Random): string {
    return sealBytes(this.#wrapping, place, dataKey, random);
  }

  /** The secret; undefined where it was wrapped by another key, for another place, or is damaged. */
  unwrap(wrapped: string, place: string): Buffer | undefined {
    return openBytes(this.#wrapping, place, wrapped);
  }

  /**
   * Commits to a fingerprint for a record: `sha256:<hex>` over the RFC 8785 bytes of `["fingerprint-commitment-v1",
   * secret, fingerprint]`. Equal ones stay equal within the chain; nobody without the secret can try arguments against it.
   */
  commitFingerprint(fingerprint: string): string {
    return contentDigest(canonicalJson(["fingerprint-commitment-v1", this.#secret, fingerprint]));
  }

  /** `hmac-sha256:<hex>` of `text` for one purpose: an attacker who can write the store, but has no key, cannot make one. */
  authenticate(purpose: string, text: string): string {
    return `hmac-sha256:${createHmac("sha256", this.#secret).update(`${purpose}\n${text}`).digest("hex")}`;
  }
}

/** The wrapping key of each chain. */
export interface WrappingKeyStore {
  /** Creates the key of a chain that has none. Durable when it resolves, before anything is sealed with it. */
  create(chain: string): Promise<WrappingKey>;
  /** Finds the chain's key; undefined where there is none, or where it is damaged or another chain's. */
  find(chain: string): Promise<WrappingKey | undefined>;
}

const chainPattern = /^[A-Za-z0-9_-]{1,64}$/;

/** One file for each chain in a folder (mode 0700): `<chain id>.wrap`, mode 0600. */
export class WrappingKeyFolder implements WrappingKeyStore {
  readonly #path: string;
  readonly #random: Random;
  readonly #copy: ((path: string) => Promise<void>) | undefined;

  /** `copy`: as `CopyKey` of `key-folder.ts`. */
  constructor(path: string, random: Random, copy?: (path: string) => Promise<void>) {
    this.#path = path;
    this.#random = random;
    this.#copy = copy;
  }

  async create(chain: string): Promise<WrappingKey> {
    const key = WrappingKey.generate(this.#random);
    await mkdir(this.#path, { recursive: true, mode: 0o700 });
    const file = await open(this.#file(chain), "wx", 0o600);
    try {
      await file.writeFile(key.toText(chain));
      await file.sync();
    } finally {
      await file.close();
    }
    const folder = await open(this.#path, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
    await this.#copy?.(this.#file(chain));
    return key;
  }

  async find(chain: string): Promise<WrappingKey | undefined> {
    try {
      return WrappingKey.parse(await readFile(this.#file(chain), "utf8"), chain);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  #file(chain: string): string {
    if (!chainPattern.test(chain)) throw new TypeError("WrappingKeyFolder: expected the id of a chain");
    return join(this.#path, `${chain}.wrap`);
  }
}

/** Wrapping keys of a store in memory. */
export class WrappingKeyMemory implements WrappingKeyStore {
  readonly #random: Random;
  readonly #keys = new Map<string, WrappingKey>();

  constructor(random: Random) {
    this.#random = random;
  }

  async create(chain: string): Promise<WrappingKey> {
    const key = WrappingKey.generate(this.#random);
    this.#keys.set(chain, key);
    return key;
  }

  async find(chain: string): Promise<WrappingKey | undefined> {
    return this.#keys.get(chain);
  }
}

/** Bytes of every key. */
export const cipherKeyBytes = 32;

const algorithm = "aes-256-gcm";

/** Bytes of every nonce. */
export const nonceBytes = 12;

const tagBytes = 16;
/** Bytes or characters that are encrypted at once. */
const maxAtOnce = 65_536;

/**
 * AES-256-GCM under a fresh random nonce: nonce, tag and ciphertext as base64. Opens only with the same key and for the
 * same `place`, so that nothing sealed can stand in for something else. A key serves some 2^32 times.
 */
export function sealBytes(key: Uint8Array, place: string, plain: Uint8Array, random: Random): string {
  return encryptBytes(key, random(nonceBytes), place, plain).toString("base64");
}

/**
 * The bytes that `sealBytes` returns in base64, after `lead` bytes of 0, for a nonce that the key never served before. A text
 * counts as UTF-8.
 */
export function encryptBytes(
  key: Uint8Array,
  nonce: Uint8Array,
  place: string,
  plain: Uint8Array | string,
  lead = 0,
): Buffer {
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(place));
  const sealed = Buffer.allocUnsafe(lead + nonceBytes + tagBytes + Buffer.byteLength(plain)).fill(0, 0, lead);
  sealed.set(nonce, lead);
  let at = lead + nonceBytes + tagBytes;
  for (const piece of plain.length > maxAtOnce ? piecesOf(plain) : [plain]) {
    const part = typeof piece === "string" ? cipher.update(piece, "utf8") : cipher.update(piece);
    sealed.set(part, at);
    at += part.length;
  }
  cipher.final();
  sealed.set(cipher.getAuthTag(), lead + nonceBytes);
  return sealed;
}

function piecesOf(plain: Uint8Array | string): Iterable<Uint8Array | string> {
  return typeof plain === "string" ? textPieces(plain) : bytePieces(plain);
}

/** Returns the plain bytes of `sealBytes`; undefined where key, place or a single bit differs. */
export function openBytes(key: Uint8Array, place: string, sealed: string): Buffer | undefined {
  const bytes = Buffer.from(sealed, "base64");
  if (bytes.length < nonceBytes + tagBytes || bytes.toString("base64") !== sealed) return undefined;
  const nonce = bytes.subarray(0, nonceBytes);
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
    .setAAD(Buffer.from(place))
    .setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]);
  } catch {
    return undefined; // the tag does not fit
  }
}
