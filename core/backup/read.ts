import { isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { VerifyingKey } from "../action/signing-key.ts";
import type { Mark } from "../evidence/chain/high-water.ts";
import { type BackupHeader, parseContent, parseHeader, parseSeal, refuse } from "./content.ts";
import { keyOfSeal, SealedLines } from "./write.ts";

/** The identity of a sound backup. */
export interface SoundBackup {
  readonly header: BackupHeader;
  /** The key that sealed it. The caller decides whether to trust that key. */
  readonly key: VerifyingKey;
  /** Lines under the seal. */
  readonly lines: number;
  /** Base64 of the root over them. */
  readonly root: string;
}

/** Receives the content of a backup in order. It counts only once `readBackup` has resolved. */
export interface BackupSink {
  mark(mark: Mark): void;
  /** Keys ascend. */
  entry(key: string, value: string): void;
  /** Called now and then: the received content may be written. */
  flush(): Promise<void>;
}

interface ReadTools {
  readonly sink?: BackupSink;
  readonly signal?: AbortSignal;
}

/** A first or last line is never longer. */
const maxFrame = 65_536;

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
    if (header === undefined) header = parseHeader(textOf(line, maxFrame));
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
  if (header === undefined) throw refuse(`${parseHeader(textOf(last, maxFrame)).name} has no end: the file was cut`);
  return { header, ...checkSeal(last, sealed, header) };
}

function checkSeal(line: Buffer, sealed: SealedLines, { installation }: BackupHeader): Omit<SoundBackup, "header"> {
  const seal = line.length > maxFrame ? undefined : parseSeal(line.toString("utf8"));
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

function textOf(line: Buffer, maxBytes: number): string {
  if (line.length <= maxBytes && isUtf8(line)) return line.toString("utf8");
  throw refuse("expected a backup, got a file of another kind");
}

/** Bytes of the longest line: the largest value that limits allow, encrypted, in base64, and its key. */
const maxLine = 402_653_184;
/** A file of another kind may have no end of line at all. */
const maxFirst = 65_536;
const chunkBytes = 262_144;
const newline = 0x0a;

/**
 * The lines of a file in order, as they are read, without their ends: some at a time, so that what reads them can let
 * others run. Holds one line and one chunk. Throws BACKUP_REFUSED for what is no regular file, for a line that is too
 * long, and where the last line does not end.
 */
async function* readLines(path: string): AsyncGenerator<readonly Buffer[]> {
  const file = await openRegular(path);
  try {
    let rest: Buffer[] = [];
    let restBytes = 0;
    let maxBytes = maxFirst;
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes));
      if (bytesRead === 0) break;
      const { lines, tail } = split(buffer.subarray(0, bytesRead), rest);
      if (lines.length > 0) [rest, restBytes, maxBytes] = [[], 0, maxLine];
      rest.push(tail);
      restBytes += tail.length;
      if (restBytes > maxBytes) throw refuse(`expected a line of at most ${maxBytes} bytes, got a longer one`);
      if (lines.length > 0) yield lines;
    }
    if (restBytes > 0) throw refuse("its last line does not end: the file was cut");
  } finally {
    await file.close();
  }
}

/** The lines that end in `chunk`, the first of them begun in `rest`, and what comes after the last. */
function split(chunk: Buffer, rest: readonly Buffer[]): { readonly lines: readonly Buffer[]; readonly tail: Buffer } {
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
    const line = chunk.subarray(start, end);
    lines.push(lines.length === 0 && rest.length > 0 ? Buffer.concat([...rest, line]) : line);
    start = end + 1;
  }
  return { lines, tail: chunk.subarray(start) };
}

/** A link, a pipe or a device is no backup: the first leads elsewhere, the others may never end. */
async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (cause: NodeJS.ErrnoException) => {
      throw refuse(
        cause.code === "ELOOP" ? `\`${path}\` is a symbolic link` : `\`${path}\` cannot be read: ${cause.code}`,
        cause,
      );
    },
  );
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw refuse(`expected \`${path}\` to be a file`);
}
