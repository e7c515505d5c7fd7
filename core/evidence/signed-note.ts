import { hash } from "node:crypto";
import type { SigningKey, VerifyingKey } from "../kernel/signing-key.ts";

/** One signature line of a C2SP signed note. */
export interface NoteSignature {
  readonly name: string;
  /** The first bytes of a digest of name and key: which key to try. Proves nothing. */
  readonly keyHash: Buffer;
  readonly signature: Buffer;
}

/** A C2SP signed note: the text, up to and including its last newline, and who signed it. */
export interface SignedNote {
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** A key under the name that its signature lines carry. */
export interface NamedKey<Key extends VerifyingKey | SigningKey> {
  readonly name: string;
  readonly key: Key;
}

const ed25519 = 0x01;
const keyHashBytes = 4;
const signatureBytes = 64;
const mostSignatures = 16;
const longestNote = 65_536;

/** First four bytes of SHA-256 over name, newline, algorithm and raw public key. */
export function noteKeyHash(name: string, key: VerifyingKey): Buffer {
  const input = Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(ed25519), key.raw]);
  return hash("sha256", input, "buffer").subarray(0, keyHashBytes);
}

/** The note with one signature of each key. Throws TypeError for a text without last newline and a name no note can hold. */
export function signNote(text: string, keys: readonly NamedKey<SigningKey>[]): string {
  if (!isNoteText(text)) throw new TypeError("signNote: expected lines without control characters, the last one ended");
  const lines = keys.map(({ name, key }) => {
    if (!isKeyName(name)) throw new TypeError("signNote: expected a key name without white space and `+`");
    const blob = Buffer.concat([noteKeyHash(name, key.public), key.sign(text)]);
    return `— ${name} ${blob.toString("base64")}\n`;
  });
  return `${text}\n${lines.join("")}`;
}

/** Takes a note apart; undefined for what is none. Checks no signature. */
export function parseNote(note: string): SignedNote | undefined {
  const split = note.lastIndexOf("\n\n");
  if (split === -1 || note.length > longestNote || !note.endsWith("\n")) return undefined;
  const text = note.slice(0, split + 1);
  const signatures = note
    .slice(split + 2, -1)
    .split("\n")
    .map(parseSignature);
  if (!isNoteText(text) || signatures.length > mostSignatures) return undefined;
  return signatures.every((signature) => signature !== undefined) ? { text, signatures } : undefined;
}

/** Whether the note carries a good signature of this very key under this name. A second one by that name must be good too. */
export function isSignedBy(note: SignedNote, { name, key }: NamedKey<VerifyingKey>): boolean {
  const keyHash = noteKeyHash(name, key);
  const own = note.signatures.filter((each) => each.name === name && each.keyHash.equals(keyHash));
  return own.length > 0 && own.every(({ signature }) => key.verify(note.text, signature));
}

function parseSignature(line: string): NoteSignature | undefined {
  const [, name = "", base64 = ""] = /^— (\S+) ([A-Za-z0-9+/]+={0,2})$/.exec(line) ?? [];
  const blob = Buffer.from(base64, "base64");
  if (!isKeyName(name) || blob.length !== keyHashBytes + signatureBytes || blob.toString("base64") !== base64) {
    return undefined;
  }
  return { name, keyHash: blob.subarray(0, keyHashBytes), signature: blob.subarray(keyHashBytes) };
}

function isKeyName(name: string): boolean {
  return /^[^\s+]{1,256}$/u.test(name);
}

function isNoteText(text: string): boolean {
  return /^(?:[^\p{Cc}\p{Cs}]*\n)+$/u.test(text);
}
