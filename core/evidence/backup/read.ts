import { isUtf8 } from "node:buffer";
import type { VerifyingKey } from "../../kernel/signing-key.ts";
import type { Mark } from "../high-water.ts";
import { type BackupHeader, parseContent, parseHeader, parseSeal, refuse } from "./content.ts";
import { readLines } from "./line-reader.ts";
import { keyOfSeal, SealedLines } from "./seal.ts";

/** What a sound backup says of itself. */
export interface SoundBackup {
  readonly header: BackupHeader;
  /** The key that sealed it. Whether that key is to be trusted, it cannot say. */
  readonly key: VerifyingKey;
  /** Lines under the seal. */
  readonly lines: number;
  /** Base64 of the root over them. */
  readonly root: string;
}

/** Takes what a backup holds, in order. What it took counts only once `readBackup` has resolved. */
export interface BackupSink {
  mark(mark: Mark): void;
  /** Keys ascend. */
  entry(key: string, value: string): void;
  /** Called now and then: what was taken may be written. */
  flush(): Promise<void>;
}

export interface ReadTools {
  readonly sink?: BackupSink;
  readonly signal?: AbortSignal;
}

/** A first or last line is never longer. */
const longestFrame = 65_536;

/**
 * Reads a backup to its end, and checks every byte against its seal. Nothing in the middle is parsed without a `sink`;
 * rejects when `signal` aborts. Throws BACKUP_REFUSED with the reason: another kind or version, cut, changed, or sealed by nobody.
 */
export async function readBackup(path: string, { sink, signal }: ReadTools = {}): Promise<SoundBackup> {
  const sealed = new SealedLines();
  const content = sink === undefined ? undefined : new ContentOrder(sink);
  let header: BackupHeader | undefined;
  let last: Buffer | undefined;
  const take = (line: Buffer): void => {
    sealed.add(line);
    if (header === undefined) header = parseHeader(textOf(line, longestFrame));
    else content?.take(line);
  };
  for await (const lines of readLines(path)) {
    // The last line so far may be the seal, which is not under itself.
    for (const line of lines) {
      if (last !== undefined) take(last);
      last = line;
    }
    signal?.throwIfAborted();
    await sink?.flush();
  }
  if (last === undefined) throw refuse("expected a backup, got an empty file");
  if (header === undefined)
    throw refuse(`${parseHeader(textOf(last, longestFrame)).name} has no end: the file was cut`);
  return { header, ...checkSeal(last, sealed, header) };
}

function checkSeal(line: Buffer, sealed: SealedLines, { installation }: BackupHeader): Omit<SoundBackup, "header"> {
  const seal = line.length > longestFrame ? undefined : parseSeal(line.toString("utf8"));
  if (seal === undefined) throw refuse("its last line is no seal: the file was cut, or its end changed");
  const key = keyOfSeal(sealed, installation, seal);
  if (key === undefined) throw refuse("its seal does not fit: a line, or the seal, was changed, added or taken out");
  return { key, lines: sealed.count, root: sealed.root };
}

/** Marks come first; keys ascend, so that none comes twice. */
class ContentOrder {
  readonly #sink: BackupSink;
  #key = "";

  constructor(sink: BackupSink) {
    this.#sink = sink;
  }

  take(line: Buffer): void {
    const content = parseContent(textOf(line, line.length));
    if ("tenant" in content) {
      if (this.#key !== "") throw refuse("expected marks before entries");
      this.#sink.mark(content);
    } else this.#takeEntry(content);
  }

  #takeEntry([key, value]: readonly [key: string, value: string]): void {
    if (Buffer.compare(Buffer.from(this.#key), Buffer.from(key)) >= 0) throw refuse("expected keys that ascend");
    this.#key = key;
    this.#sink.entry(key, value);
  }
}

function textOf(line: Buffer, longest: number): string {
  if (line.length <= longest && isUtf8(line)) return line.toString("utf8");
  throw refuse("expected a backup, got a file of another kind");
}
