import { createPublicKey, type KeyObject } from "node:crypto";
import { contentDigest } from "./digest.ts";

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

/** Whether a public or private key is Ed25519, or ECDSA on P-256. */
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
