import type { SigningKey, VerifyingKey } from "../kernel/signing-key.ts";
import { hashBytes } from "./merkle.ts";
import { isSignedBy, type NamedKey, parseNote, type SignedNote, signNote } from "./signed-note.ts";

/** What a tenant's key says of its chain at one size. */
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
const hash = `${base64}{42}[AEIMQUYcgkosw048]=`;
/** Finds checkpoints in a text: each is one that `parseCheckpoint` reads. */
export const notePattern: RegExp = new RegExp(
  `(?<![^\\n])${originPrefix}([\\w-]{1,64})\\n[1-9]\\d{0,14}\\n${hash}\\nhead [0-9a-f]{64}\\n` +
    "time \\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z\\n\\n" +
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

/** The C2SP signed note of a checkpoint, with a signature of each key. */
export function signCheckpoint(checkpoint: Checkpoint, keys: readonly SigningKey[]): string {
  const { chain, size, root, head, time } = checkpoint;
  const text = `${checkpointOrigin(chain)}\n${size}\n${root.toString("base64")}\nhead ${head}\ntime ${time}\n`;
  return signNote(
    text,
    keys.map((key) => ({ name: checkpointKeyName(chain, key.id), key })),
  );
}

/** Reads a checkpoint; undefined for anything but the exact form. Checks no signature. */
export function parseCheckpoint(text: string): SignedCheckpoint | undefined {
  const note = parseNote(text);
  const [origin = "", size = "", rootText = "", head = "", time = "", ...rest] = note?.text.split("\n") ?? [];
  if (note === undefined || rest.length !== 1 || !origin.startsWith(originPrefix)) return undefined;
  const chain = origin.slice(originPrefix.length);
  const root = Buffer.from(rootText, "base64");
  if (!chainPattern.test(chain) || !sizePattern.test(size)) return undefined;
  if (root.length !== hashBytes || root.toString("base64") !== rootText) return undefined;
  if (!head.startsWith("head ") || !digestPattern.test(head.slice(5))) return undefined;
  if (!time.startsWith("time ") || !timePattern.test(time.slice(5))) return undefined;
  if (!note.signatures.every(({ name }) => isKeyNameOf(chain, name))) return undefined;
  return { chain, size: Number(size), root, head: head.slice(5), time: time.slice(5), note };
}

function isKeyNameOf(chain: string, name: string): boolean {
  const prefix = checkpointKeyName(chain, "");
  return name.startsWith(prefix) && /^[0-9a-f]{16}$/.test(name.slice(prefix.length));
}

/** Whether the checkpoint carries good signatures of all these keys. No key at all is no signature. */
export function isCheckpointSignedBy(checkpoint: SignedCheckpoint, keys: readonly VerifyingKey[]): boolean {
  const named: NamedKey<VerifyingKey>[] = keys.map((key) => ({
    name: checkpointKeyName(checkpoint.chain, key.id),
    key,
  }));
  return named.length > 0 && named.every((key) => isSignedBy(checkpoint.note, key));
}
