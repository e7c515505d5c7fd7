import type { FileHandle } from "node:fs/promises";
import type { AbstractSnapshot } from "abstract-level";
import type { Mark } from "../high-water.ts";
import type { Installation } from "../installation.ts";
import type { EvidenceStore } from "../key-space.ts";
import { type BackupHeader, entryLine, headerLine, markLine, sealLine } from "./content.ts";
import { SealedLines, sealLines } from "./seal.ts";

/** Everything a data folder held at one moment, its keys left out. */
export interface BackupSource {
  readonly store: EvidenceStore;
  readonly snapshot: AbstractSnapshot;
  readonly header: BackupHeader;
  readonly marks: Iterable<Mark>;
  readonly installation: Installation;
}

export interface WriteTools {
  /** Hears the bytes written so far. */
  readonly onProgress: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** What was written under the seal. */
export interface Written {
  readonly lines: number;
  /** Base64. */
  readonly root: string;
  /** Of the whole file. */
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
    await out.write(chunk.map(([key, value]) => entryLine(key, value)));
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
