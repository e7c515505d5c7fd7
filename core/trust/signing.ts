import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { bundleToJSON, toDSSEBundle } from "@sigstore/bundle";
import { dsse } from "@sigstore/core";
import { GatewayError } from "../action/error.ts";
import { isSupported, type PublicKey, publicKeyOf } from "../action/signing-key.ts";
import { payloadType } from "./statement.ts";

/** A private key that signs extensions. */
export interface ExtensionSigner {
  readonly public: PublicKey;
  /** Returns one line of a signature file with its newline. */
  sign(payload: Buffer): string;
}

/** Reads unencrypted PKCS#8 or SEC 1 PEM. Throws KEY_UNUSABLE, which never quotes the text. */
export function readSigner(pem: string): ExtensionSigner {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    throw unusable();
  }
  const publicKey = isSupported(key) ? publicKeyOf(createPublicKey(key)) : undefined;
  if (publicKey === undefined) throw unusable();
  return { public: publicKey, sign: (payload) => signLine(payload, key, publicKey.id) };
}

/** Generates an Ed25519 key: PKCS#8 PEM of the private key, a secret, and the public key. */
export function generateSigner(): { readonly pem: string; readonly public: PublicKey } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const known = publicKeyOf(publicKey);
  if (known === undefined) throw new TypeError("generateSigner: expected an Ed25519 key");
  return { pem: privateKey.export({ format: "pem", type: "pkcs8" }).toString(), public: known };
}

function signLine(payload: Buffer, key: KeyObject, keyHint: string): string {
  const digest = key.asymmetricKeyType === "ed25519" ? null : "sha256";
  const signature = sign(digest, dsse.preAuthEncoding(payloadType, payload), key);
  const bundle = toDSSEBundle({ artifact: payload, artifactType: payloadType, signature, keyHint });
  return `${JSON.stringify(bundleToJSON(bundle))}\n`;
}

function unusable(): GatewayError {
  return new GatewayError("KEY_UNUSABLE", "expected the unencrypted PEM of an Ed25519 or ECDSA P-256 private key");
}
