import { createHmac } from "node:crypto";
import { type NamedValue, widerValues } from "../fact/named-value.ts";

/** Values of untrusted answers that a session, or a group of sessions, remembers. */
const maxUntrusted = 1_024;
const maxKnown = 1_024;
const digestBytes = 6;

/** A value as it is remembered: 48 bits of its HMAC. Nobody without the key can try values against it. */
type ValueDigest = number;

/** The stored part of a memory: additions to the head of a session or group. */
export interface StoredValues {
  /** Digests of the values of untrusted answers, in base64url. */
  readonly untrusted_values?: string;
  /** Present where there were more than are remembered. */
  readonly untrusted_overflow?: true;
}

/**
 * The hosts, paths and addresses that untrusted answers named first, and those that were known before them: from requests,
 * trusted answers and earlier actions. First seen, first kept: a value never changes sides. Those that are known are kept in
 * memory alone, the latest of them; without them a value counts as untrusted sooner.
 */
export class ValueMemory {
  readonly #untrusted: Set<ValueDigest>;
  readonly #known = new Set<ValueDigest>();
  /** True where untrusted answers named more values than are remembered: every value that is not known counts as untrusted. */
  #isOverflown: boolean;

  constructor({ untrusted_values: stored = "", untrusted_overflow: overflow }: StoredValues = {}) {
    const bytes = Buffer.from(stored, "base64url");
    const count = Math.floor(bytes.length / digestBytes);
    this.#untrusted = new Set(
      Array.from({ length: count }, (_, at) => bytes.readUIntBE(at * digestBytes, digestBytes)),
    );
    this.#isOverflown = overflow === true;
  }

  /** Returns true once an untrusted answer named anything new. */
  get hasUntrusted(): boolean {
    return this.#untrusted.size > 0 || this.#isOverflown;
  }

  /** Adds values of an untrusted answer. Returns whether any of them is new. */
  addUntrusted(digests: Iterable<ValueDigest>): boolean {
    const before = this.#untrusted.size;
    for (const digest of digests) {
      if (this.#known.has(digest) || this.#untrusted.has(digest)) continue;
      if (this.#untrusted.size === maxUntrusted) return this.#overflow();
      this.#untrusted.add(digest);
    }
    return this.#untrusted.size > before;
  }

  #overflow(): boolean {
    const isNew = !this.#isOverflown;
    this.#isOverflown = true;
    return isNew;
  }

  /** Adds values that did not come from an untrusted answer; what counts as untrusted stays so. */
  addKnown(values: Iterable<NamedValue>, digestOf: (value: NamedValue) => ValueDigest): void {
    for (const value of values) {
      if (this.hasUntrusted && this.isUntrusted(value, digestOf)) continue;
      const digest = digestOf(value);
      this.#known.delete(digest);
      this.#known.add(digest);
    }
    for (const oldest of this.#known) {
      if (this.#known.size <= maxKnown) return;
      this.#known.delete(oldest);
    }
  }

  /** Returns whether a value, or what it is part of, was named by an untrusted answer first. */
  isUntrusted(value: NamedValue, digestOf: (value: NamedValue) => ValueDigest): boolean {
    for (const each of widerValues(value)) {
      const digest = digestOf(each);
      if (this.#known.has(digest)) return false;
      if (this.#untrusted.has(digest)) return true;
    }
    return this.#isOverflown;
  }

  /** Adds the untrusted values of another memory. */
  join(other: ValueMemory): void {
    this.addUntrusted(other.#untrusted);
    this.#isOverflown ||= other.#isOverflown;
  }

  /** Approximate bytes in memory. */
  get size(): number {
    return 48 * (this.#untrusted.size + this.#known.size);
  }

  stored(): StoredValues {
    if (!this.hasUntrusted) return {};
    const bytes = Buffer.alloc(this.#untrusted.size * digestBytes);
    let at = 0;
    for (const digest of this.#untrusted) at = bytes.writeUIntBE(digest, at, digestBytes);
    return {
      untrusted_values: bytes.toString("base64url"),
      ...(this.#isOverflown ? { untrusted_overflow: true } : {}),
    };
  }
}

/** Returns the digest of a value under a key. */
export function valueDigest(key: string, value: NamedValue): ValueDigest {
  return createHmac("sha256", key).update(value).digest().readUIntBE(0, digestBytes);
}
