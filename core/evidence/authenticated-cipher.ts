import { createCipheriv, createDecipheriv } from "node:crypto";
import type { Random } from "../kernel/port.ts";

/** Bytes of every key. */
export const cipherKeyBytes = 32;

const algorithm = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;

/**
 * AES-256-GCM under a fresh random nonce: nonce, tag and ciphertext as base64. Opens only with the same key and for the
 * same `place`, so that nothing sealed can stand in for something else. A key serves some 2^32 times.
 */
export function sealBytes(key: Uint8Array, place: string, plain: Uint8Array, random: Random): string {
  const nonce = random(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(place));
  const sealed = [cipher.update(plain), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString("base64");
}

/** What `sealBytes` was given; undefined where key, place or a single bit is another. */
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
    return undefined; // the tag does not fit: the one thing this function has to say
  }
}
