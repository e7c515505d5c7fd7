import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { sha256Hex } from "./digest.ts";

/** Bytes of a raw Ed25519 public key. */
const publicKeyBytes = 32;
const seedBytes = 32;
/** What precedes the seed in the PKCS#8 form of an Ed25519 key (RFC 8410). */
const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex");

/** First 16 hex digits of the SHA-256 of a raw public key. */
export function keyIdOf(publicKey: Uint8Array): string {
  return sha256Hex(publicKey).slice(0, 16);
}

/** An Ed25519 public key that checks signatures. */
export class VerifyingKey {
  readonly id: string;
  /** The raw 32 bytes. */
  readonly raw: Buffer;
  readonly #key: KeyObject;

  private constructor(raw: Buffer) {
    this.id = keyIdOf(raw);
    this.raw = raw;
    this.#key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: raw.toString("base64url") }, format: "jwk" });
  }

  /** From the base64 of the raw 32 bytes; undefined for anything else, a second spelling included. */
  static parse(text: string): VerifyingKey | undefined {
    const raw = Buffer.from(text, "base64");
    return raw.length === publicKeyBytes && raw.toString("base64") === text ? new VerifyingKey(raw) : undefined;
  }

  static from(raw: Buffer): VerifyingKey {
    if (raw.length !== publicKeyBytes) throw new TypeError(`VerifyingKey: expected 32 bytes, got ${raw.length}`);
    return new VerifyingKey(raw);
  }

  /** Base64 of the raw key: how records, bundles and the command line name it. */
  get text(): string {
    return this.raw.toString("base64");
  }

  verify(message: string | Uint8Array, signature: Uint8Array): boolean {
    return verify(null, bytesOf(message), this.#key, signature);
  }
}

/** An Ed25519 key pair. The private half leaves it as PEM only, for the key folder. */
export class SigningKey {
  readonly public: VerifyingKey;
  readonly #key: KeyObject;

  private constructor(key: KeyObject) {
    this.#key = key;
    const { x } = createPublicKey(key).export({ format: "jwk" });
    if (key.asymmetricKeyType !== "ed25519" || x === undefined)
      throw new TypeError("SigningKey: expected an Ed25519 key");
    this.public = VerifyingKey.from(Buffer.from(x, "base64url"));
  }

  /** A key made from 32 unpredictable bytes. */
  static fromSeed(seed: Uint8Array): SigningKey {
    if (seed.length !== seedBytes) throw new TypeError(`SigningKey: expected 32 bytes, got ${seed.length}`);
    const der = Buffer.concat([pkcs8Prefix, seed]);
    return new SigningKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
  }

  /** Throws where the text is no Ed25519 private key. The error may quote nothing of it. */
  static fromPem(pem: string): SigningKey {
    return new SigningKey(createPrivateKey(pem));
  }

  get id(): string {
    return this.public.id;
  }

  /** PKCS#8 PEM of the private key: a secret. */
  toPem(): string {
    return this.#key.export({ format: "pem", type: "pkcs8" }).toString();
  }

  sign(message: string | Uint8Array): Buffer {
    return sign(null, bytesOf(message), this.#key);
  }
}

function bytesOf(message: string | Uint8Array): Uint8Array {
  return typeof message === "string" ? Buffer.from(message) : message;
}
