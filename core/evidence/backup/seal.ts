import { sha256Hex } from "../../kernel/digest.ts";
import { VerifyingKey } from "../../kernel/signing-key.ts";
import { CompactRange } from "../compact-range.ts";
import type { Installation } from "../installation.ts";
import { leafHash } from "../merkle.ts";
import { isSignedBy, parseNote, signNote } from "../signed-note.ts";
import type { BackupSeal } from "./content.ts";

/** What a seal is over: all lines before it, each a leaf of an RFC 6962 tree. */
export class SealedLines {
  readonly #tree: CompactRange = new CompactRange();

  /** `line` is without its end. */
  add(line: string | Uint8Array): void {
    this.#tree.append(leafHash(sha256Hex(line)));
  }

  get count(): number {
    return this.#tree.size;
  }

  /** Base64. */
  get root(): string {
    return this.#tree.root().toString("base64");
  }
}

/** Seals lines with the key of the data folder they come from. */
export function sealLines({ count, root }: SealedLines, { id, key }: Installation): BackupSeal {
  const signed = signNote(noteText(id, count, root), [{ name: keyName(id, key.id), key }]);
  return { publicKey: key.public.text, note: signed };
}

/** The key that sealed exactly these lines; undefined where the seal is over others, or not signed by the key it names. */
export function keyOfSeal(
  { count, root }: SealedLines,
  installation: string,
  { publicKey, note: text }: BackupSeal,
): VerifyingKey | undefined {
  const key = VerifyingKey.parse(publicKey);
  const note = parseNote(text);
  if (key === undefined || note === undefined || note.text !== noteText(installation, count, root)) return undefined;
  return isSignedBy(note, { name: keyName(installation, key.id), key }) ? key : undefined;
}

function noteText(installation: string, count: number, root: string): string {
  return `agent-governance-gateway/backup/${installation}\n${count}\n${root}\n`;
}

function keyName(installation: string, keyId: string): string {
  return `backup/${installation}/${keyId}`;
}
