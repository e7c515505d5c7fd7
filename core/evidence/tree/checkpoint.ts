import { hash } from "node:crypto";
import type { SigningKey, VerifyingKey } from "../../action/signing-key.ts";
import { hashBytes } from "./merkle.ts";

/** A statement of the head of a chain at one size. */
export interface Checkpoint {
  readonly chain: string;
  /** Number of records. At least 1. */
  readonly size: number;
  /** RFC 6962 root over the records' digests. */
  readonly root: Buffer;
  /** SHA-256 (hex) of the last record's bytes. */
  readonly head: string;
  /** RFC 3339 time of the last record. */
  readonly time: string;
  /** SHA-256 (hex) of the chain's state at this size; in checkpoints that were published or exported. */
  readonly state?: string | undefined;
}

/** A checkpoint as it was read, with the note that carries its signatures. */
export interface SignedCheckpoint extends Checkpoint {
  readonly note: SignedNote;
}

const originPrefix = "agent-governance-gateway/evidence/";
const chainPattern = /^[A-Za-z0-9_-]{1,64}$/;
const digestPattern = /^[0-9a-f]{64}$/;
const sizePattern = /^[1-9]\d{0,14}$/;
const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const base64 = "[A-Za-z0-9+/]";
const hashCheckpoint = `${base64}{42}[AEIMQUYcgkosw048]=`;
/** Finds checkpoints in a text: each is one that `parseCheckpoint` reads. */
export const notePattern: RegExp = new RegExp(
  `(?<![^\\n])${originPrefix}([\\w-]{1,64})\\n[1-9]\\d{0,14}\\n${hashCheckpoint}\\nhead [0-9a-f]{64}\\n` +
    "time \\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z\\n(?:state [0-9a-f]{64}\\n)?\\n" +
    `(?:— evidence/\\1/[0-9a-f]{16} ${base64}{90}[AEIMQUYcgkosw048]=\\n){1,16}`,
  "g",
);

/** The first line of every checkpoint of a chain. */
export function checkpointOrigin(chain: string): string {
  return `${originPrefix}${chain}`;
}

/** The name under which a key signs checkpoints of a chain. */
export function checkpointKeyName(chain: string, keyId: string): string {
  return `evidence/${chain}/${keyId}`;
}

/** A key as it signs checkpoints of a chain. */
export function checkpointSigner(chain: string, key: SigningKey): NoteSigner {
  return noteSigner(checkpointKeyName(chain, key.id), key);
}

/** The C2SP signed note of a checkpoint, with a signature of each signer. */
export function signCheckpoint(checkpoint: Checkpoint, signers: readonly NoteSigner[]): string {
  const { chain, size, root, head, time, state } = checkpoint;
  const text = `${originPrefix}${chain}\n${size}\n${root.toString("base64")}\nhead ${head}\ntime ${time}\n`;
  return signNote(state === undefined ? text : `${text}state ${state}\n`, signers);
}

/** Reads a checkpoint; undefined for anything but the exact form. Checks no signature. */
export function parseCheckpoint(text: string): SignedCheckpoint | undefined {
  const note = parseNote(text);
  const [origin = "", size = "", rootText = "", head = "", time = "", ...rest] = note?.text.split("\n") ?? [];
  if (note === undefined || rest.at(-1) !== "" || !origin.startsWith(originPrefix)) return undefined;
  const chain = origin.slice(originPrefix.length);
  const root = Buffer.from(rootText, "base64");
  if (!chainPattern.test(chain) || !sizePattern.test(size)) return undefined;
  if (root.length !== hashBytes || root.toString("base64") !== rootText) return undefined;
  if (!head.startsWith("head ") || !digestPattern.test(head.slice(5))) return undefined;
  if (!time.startsWith("time ") || !timePattern.test(time.slice(5))) return undefined;
  if (!note.signatures.every(({ name }) => isKeyNameOf(chain, name))) return undefined;
  const checkpoint = { chain, size: Number(size), root, head: head.slice(5), time: time.slice(5), note };
  if (rest.length === 1) return checkpoint;
  const [, state] = /^state ([0-9a-f]{64})$/.exec(String(rest[0])) ?? [];
  return rest.length === 2 && state !== undefined ? { ...checkpoint, state } : undefined;
}

function isKeyNameOf(chain: string, name: string): boolean {
  const prefix = checkpointKeyName(chain, "");
  return name.startsWith(prefix) && /^[0-9a-f]{16}$/.test(name.slice(prefix.length));
}

/** Checks that the checkpoint carries good signatures of all these keys. False for no key at all. */
export function isCheckpointSignedBy(checkpoint: SignedCheckpoint, keys: readonly VerifyingKey[]): boolean {
  const named = keys.map((key): NamedKey => ({ name: checkpointKeyName(checkpoint.chain, key.id), key }));
  return named.length > 0 && named.every((key) => isSignedBy(checkpoint.note, key));
}

/** One signature line of a C2SP signed note. */
interface NoteSignature {
  readonly name: string;
  /** The first bytes of a digest of name and key: a hint which key to try, no proof. */
  readonly keyHash: Buffer;
  readonly signature: Buffer;
}

/** A C2SP signed note: the text, up to and including its last newline, and its signatures. */
interface SignedNote {
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

/** A key under the name that its signature lines carry. */
interface NamedKey {
  readonly name: string;
  readonly key: VerifyingKey;
}

/** A key that signs notes under one name. Name and key hash are the same in every note, so they are made once. */
export interface NoteSigner {
  readonly name: string;
  readonly keyHash: Buffer;
  readonly key: SigningKey;
}

const keyName = /^[^\s+]{1,256}$/u;
const noteText = /^(?:[^\p{Cc}\p{Cs}]*\n)+$/u;
const ed25519 = 0x01;
const keyHashBytes = 4;
const signatureBytes = 64;
const maxSignatures = 16;
const maxNote = 65_536;

/** First four bytes of SHA-256 over name, newline, algorithm and raw public key. */
export function noteKeyHash(name: string, key: VerifyingKey): Buffer {
  const input = Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(ed25519), key.raw]);
  return hash("sha256", input, "buffer").subarray(0, keyHashBytes);
}

/** The signer of a key under a name. Throws TypeError for a name that no note can hold. */
export function noteSigner(name: string, key: SigningKey): NoteSigner {
  if (!keyName.test(name)) throw new TypeError("noteSigner: expected a key name without white space and `+`");
  return { name, keyHash: noteKeyHash(name, key.public), key };
}

/** Signs a note with each key. Throws TypeError for a text without last newline. */
export function signNote(text: string, signers: readonly NoteSigner[]): string {
  if (!noteText.test(text)) {
    throw new TypeError("signNote: expected lines without control characters, the last one ended");
  }
  let note = `${text}\n`;
  for (const { name, keyHash, key } of signers) {
    note += `— ${name} ${Buffer.concat([keyHash, key.sign(text)]).toString("base64")}\n`;
  }
  return note;
}

/** Parses a note; undefined for any other text. Checks no signature. */
export function parseNote(note: string): SignedNote | undefined {
  const split = note.lastIndexOf("\n\n");
  if (split === -1 || note.length > maxNote || !note.endsWith("\n")) return undefined;
  const text = note.slice(0, split + 1);
  const signatures = note
    .slice(split + 2, -1)
    .split("\n")
    .map(parseSignature);
  if (!noteText.test(text) || signatures.length > maxSignatures) return undefined;
  return signatures.every((signature) => signature !== undefined) ? { text, signatures } : undefined;
}

/** Checks that the note carries a good signature of this key under this name. A second one by that name must be good too. */
export function isSignedBy(note: SignedNote, { name, key }: NamedKey): boolean {
  const keyHash = noteKeyHash(name, key);
  const own = note.signatures.filter((each) => each.name === name && each.keyHash.equals(keyHash));
  return own.length > 0 && own.every(({ signature }) => key.verify(note.text, signature));
}

function parseSignature(line: string): NoteSignature | undefined {
  const [, name = "", base64 = ""] = /^— (\S+) ([A-Za-z0-9+/]+={0,2})$/.exec(line) ?? [];
  const blob = Buffer.from(base64, "base64");
  if (!keyName.test(name) || blob.length !== keyHashBytes + signatureBytes || blob.toString("base64") !== base64) {
    return undefined;
  }
  return { name, keyHash: blob.subarray(0, keyHashBytes), signature: blob.subarray(keyHashBytes) };
}
