import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { contentDigest, sha256Hex } from "./canonical-json.ts";

/** Bytes of a raw Ed25519 public key. */
const publicKeyBytes = 32;
const seedBytes = 32;
/** The bytes before the seed in the PKCS#8 form of an Ed25519 key (RFC 8410). */
const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex");

/** First 16 hex digits of the SHA-256 of a raw public key. */
function keyIdOf(publicKey: Uint8Array): string {
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
    return verify(null, Buffer.from(message), this.#key, signature);
  }
}

/** An Ed25519 key pair. The private half leaves it as PEM only, for the key folder. */
export class SigningKey {
  /** The id of the public half. */
  readonly id: string;
  readonly public: VerifyingKey;
  readonly #key: KeyObject;

  private constructor(key: KeyObject) {
    this.#key = key;
    const { x } = createPublicKey(key).export({ format: "jwk" });
    if (key.asymmetricKeyType !== "ed25519" || x === undefined)
      throw new TypeError("SigningKey: expected an Ed25519 key");
    this.public = VerifyingKey.from(Buffer.from(x, "base64url"));
    this.id = this.public.id;
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

  /** PKCS#8 PEM of the private key: a secret. */
  toPem(): string {
    return this.#key.export({ format: "pem", type: "pkcs8" }).toString();
  }

  sign(message: string | Uint8Array): Buffer {
    return sign(null, Buffer.from(message), this.#key);
  }
}

/** A public key of a kind that extensions may be signed with. */
export interface PublicKey {
  /** `sha256:<hex>` of the DER of its SubjectPublicKeyInfo. */
  readonly id: string;
  /** Base64 of that DER. */
  readonly spki: string;
  readonly key: KeyObject;
}

/** Describes what `readPublicKey` takes; completes "expected …". */
export const publicKeyKinds = "an Ed25519 or ECDSA P-256 public key";

/**
 * A key from PEM or from the base64 of its DER; undefined for anything else, a private key and a second spelling of the
 * base64 included.
 */
export function readPublicKey(text: string): PublicKey | undefined {
  const trimmed = text.trim();
  try {
    if (!trimmed.startsWith("-----")) return readDer(trimmed);
    // The engine would make the public half out of a private key: a secret does not belong where this is asked for.
    return trimmed.startsWith("-----BEGIN PUBLIC KEY-----") ? publicKeyOf(createPublicKey(trimmed)) : undefined;
  } catch {
    return undefined;
  }
}

/** The same for a key at hand; undefined where it is of another kind. */
export function publicKeyOf(key: KeyObject): PublicKey | undefined {
  if (!isSupported(key)) return undefined;
  const der = key.export({ format: "der", type: "spki" });
  return { id: contentDigest(der), spki: der.toString("base64"), key };
}

/** Returns whether a public or private key is Ed25519, or ECDSA on P-256. */
export function isSupported({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject): boolean {
  return type === "ed25519" || (type === "ec" && details?.namedCurve === "prime256v1");
}

function readDer(text: string): PublicKey | undefined {
  const der = Buffer.from(text, "base64");
  if (der.toString("base64") !== text) return undefined;
  const key = publicKeyOf(createPublicKey({ key: der, format: "der", type: "spki" }));
  // Two encodings of one key would be two signers.
  return key?.spki === text ? key : undefined;
}

/** The three parts of a JWS in its compact form (RFC 7515), not yet verified. */
export interface CompactJws {
  readonly header: string;
  readonly payload: string;
  /** The signed text: header and payload as received. */
  readonly signed: string;
  /** As long as Ed25519 makes it. */
  readonly signature: Buffer;
}

const signatureBytes = 64;

/** Splits a token; undefined beyond `maxLength` characters, and for anything but a token with an Ed25519 signature. */
export function splitJws(token: string, maxLength: number): CompactJws | undefined {
  if (token.length > maxLength) return undefined;
  const [header, payload, last, ...more] = token.split(".");
  if (header === undefined || payload === undefined || last === undefined || more.length > 0) return undefined;
  const signature = decodeBase64url(last);
  if (signature?.length !== signatureBytes) return undefined;
  return { header, payload, signed: `${header}.${payload}`, signature };
}

export function encodeBase64url(text: string): string {
  return Buffer.from(text).toString("base64url");
}

/** The bytes of base64url in its one spelling, else undefined: a second spelling would be a second token. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}
