import type { FileHandle } from "node:fs/promises";
import type { AbstractSnapshot } from "abstract-level";
import { sha256Hex } from "../action/canonical-json.ts";
import { VerifyingKey } from "../action/signing-key.ts";
import type { Mark } from "../evidence/chain/high-water.ts";
import type { EvidenceStore } from "../evidence/record/key-space.ts";
import { isSignedBy, noteSigner, parseNote, signNote } from "../evidence/tree/checkpoint.ts";
import { CompactRange, leafHash } from "../evidence/tree/merkle.ts";
import type { Installation } from "../evidence/witness/installation.ts";
import { copyPositionKey } from "../store/format.ts";
import { type BackupHeader, type BackupSeal, entryLine, headerLine, markLine, sealLine } from "./content.ts";

/** Everything a data folder held at one moment, its keys left out. */
interface BackupSource {
  readonly store: EvidenceStore;
  readonly snapshot: AbstractSnapshot;
  readonly header: BackupHeader;
  readonly marks: Iterable<Mark>;
  readonly installation: Installation;
}

interface WriteTools {
  /** Receives the number of bytes written so far. */
  readonly onProgress: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** The lines that were written under the seal. */
export interface Written {
  readonly lines: number;
  /** Base64. */
  readonly root: string;
  /** Bytes of the whole file. */
  readonly bytes: number;
}

const chunkEntries = 256;
/** Both engines take it; the abstract interface does not name it. */
const chunkSize: object = { highWaterMarkBytes: 262_144 };

/**
 * Writes a backup into an empty file, and seals it. Durable when it resolves; rejects when `signal` aborts. Holds some
 * hundred entries at a time, and lets others run between them.
 */
export async function writeBackup(file: FileHandle, source: BackupSource, tools: WriteTools): Promise<Written> {
  const out = new LineFile(file, tools);
  await out.write([headerLine(source.header), ...[...source.marks].map(markLine)]);
  await using entries = source.store.iterator({ snapshot: source.snapshot, ...chunkSize });
  for (;;) {
    const chunk = await entries.nextv(chunkEntries);
    if (chunk.length === 0) break;
    // What is restored of a replica is the copy of no database.
    const entered = chunk.filter(([key]) => key !== copyPositionKey);
    await out.write(entered.map(([key, value]) => entryLine(key, value)));
  }
  const { count: lines, root } = out.lines;
  await out.write([sealLine(sealLines(out.lines, source.installation))]);
  await file.sync();
  return { lines, root, bytes: out.bytes };
}

class LineFile {
  readonly #file: FileHandle;
  readonly #tools: WriteTools;
  readonly lines: SealedLines = new SealedLines();
  bytes = 0;

  constructor(file: FileHandle, tools: WriteTools) {
    this.#file = file;
    this.#tools = tools;
  }

  async write(lines: readonly string[]): Promise<void> {
    this.#tools.signal.throwIfAborted();
    for (const line of lines) this.lines.add(line);
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    await this.#file.writeFile(bytes);
    this.bytes += bytes.length;
    this.#tools.onProgress(this.bytes);
  }
}

/** The lines that a seal covers: all before it, each a leaf of an RFC 6962 tree. */
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
  const signed = signNote(noteText(id, count, root), [noteSigner(keyName(id, key.id), key)]);
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
