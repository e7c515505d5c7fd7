import { createHmac } from "node:crypto";
import { canonicalJson } from "../kernel/canonical-json.ts";
import { contentDigest, sha256Hex } from "../kernel/digest.ts";
import type { Random } from "../kernel/port.ts";
import { cipherKeyBytes, openBytes, sealBytes } from "./authenticated-cipher.ts";

const secretBytes = 32;
const formatName = "evidence-wrapping-key-v1";

/**
 * What a chain keeps from its readers: the key that wraps the data key of each private entry, and the secret that keeps
 * fingerprints from being guessed. Erasing a data key erases its entry; losing this key loses all of them.
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

  /** From the text of the file of `chain`; undefined for a damaged one and for that of another chain. */
  static parse(text: string, chain: string): WrappingKey | undefined {
    const [line = "", checksum, ...rest] = text.split("\n");
    if (checksum !== sha256Hex(line) || rest.join() !== "") return undefined;
    const [format, owner, wrapping = "", secret = ""] = line.split(" ");
    const keys = [wrapping, secret].map((each) => Buffer.from(each, "base64url"));
    const [key, chainSecret] = keys as [Buffer, Buffer];
    if (format !== formatName || owner !== chain || key.length !== cipherKeyBytes) return undefined;
    return chainSecret.length === secretBytes ? new WrappingKey(key, chainSecret) : undefined;
  }

  /** The text of its file: a secret. A checksum tells a flipped bit from a key, before anything is sealed with it. */
  toText(chain: string): string {
    const line = `${formatName} ${chain} ${Buffer.from(this.#wrapping).toString("base64url")} ${this.#secret}`;
    return `${line}\n${sha256Hex(line)}\n`;
  }

  /** A data key as the store may hold it; `place` is what it is for. */
  wrap(dataKey: Uint8Array, place: string, random: Random): string {
    return sealBytes(this.#wrapping, place, dataKey, random);
  }

  /** The data key; undefined where it was wrapped by another key, for another place, or is damaged. */
  unwrap(wrapped: string, place: string): Buffer | undefined {
    return openBytes(this.#wrapping, place, wrapped);
  }

  /**
   * What a record says of a fingerprint: `sha256:<hex>` over the RFC 8785 bytes of `["fingerprint-commitment-v1",
   * secret, fingerprint]`. Equal ones stay equal within the chain; nobody outside can try arguments against it.
   */
  commitFingerprint(fingerprint: string): string {
    return contentDigest(canonicalJson(["fingerprint-commitment-v1", this.#secret, fingerprint]));
  }

  /** `hmac-sha256:<hex>` of `text` for one purpose: who can write the store, and has no key, cannot make one. */
  authenticate(purpose: string, text: string): string {
    return `hmac-sha256:${createHmac("sha256", this.#secret).update(`${purpose}\n${text}`).digest("hex")}`;
  }
}
