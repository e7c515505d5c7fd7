import { resolve } from "node:path";
import { InvalidArgumentError } from "commander";
import type { Witness } from "../evidence/witness.ts";
import { FileWitness } from "../evidence/witness-file.ts";
import { HttpWitness } from "../evidence/witness-http.ts";
import { VerifyingKey } from "../kernel/signing-key.ts";

/** One more of `--key <base64>`. */
export function addKey(text: string, keys: readonly VerifyingKey[]): readonly VerifyingKey[] {
  const key = VerifyingKey.parse(text);
  if (key === undefined) throw new InvalidArgumentError("expected the base64 of 32 bytes");
  return [...keys, key];
}

/** One more text of a repeatable option. */
export function addText(text: string, texts: readonly string[]): readonly string[] {
  return [...texts, text];
}

/** A witness by where it keeps its notes: a folder or URL. */
export function openWitness(place: string): Witness {
  const isUrl = /^https?:\/\//.test(place);
  return isUrl ? new HttpWitness({ name: place, url: place, headers: {} }) : new FileWitness(place, resolve(place));
}
