import { constants, writeSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { crc32, deflateRaw, deflateRawSync, inflateRawSync, constants as zlib } from "node:zlib";
import { DamageError } from "./file-window.ts";
import { syncFolder } from "./folder.ts";
import { base64Form } from "./value-word.ts";

/** A write as the databases get it: a value that is null deletes. */
export interface JournalWrite {
  readonly key: string;
  readonly value: Uint8Array | null;
}

/** A batch in the journal. */
interface JournalEntry {
  /** Grows by one with each entry. */
  readonly turn: number;
  /** Offset of the page after it. */
  readonly end: number;
  /** Returns the batch; its values are valid for as long as the bytes that hold the entry. */
  writes(): readonly JournalWrite[];
}

interface JournalParts {
  /** Created (mode 0600) where there is none. */
  readonly path: string;
  /** Makes durable, in the databases, what was written to them until now. */
  readonly persist: () => Promise<void>;
}

/** Entries begin at pages, so that none is written over a part of another. */
const pageBytes = 4_096;

/** Checksum of all that follows, bytes of the list, of the list when it is inflated, and of the values behind it (4 each), turn (6). */
const headerBytes = 22;
const turnBytes = 6;
/** In the list, before each key: its bytes, and those of the value (4 each). */
const lengthBytes = 8;
/** Added to the bytes of a key whose value lies behind the list. */
const behindMark = 0x8000_0000;
const isDeleted = 0xffff_ffff;
const nothing = new Uint8Array(0);
/** Values from which on one is not copied. */
const minLarge = 65_536;
/** Bytes of a piece that are summed in one turn of the event loop: a few milliseconds. All other writes wait for each turn. */
const summedBytes = 4_194_304;

/** Bytes up to which to deflate a list takes no longer than to hand it to another thread. */
const deflatedHere = 16_384;
const deflate = promisify(deflateRaw);
const fastest = { level: zlib.Z_BEST_SPEED };

/** Bytes of a half; the second one grows for an entry that is larger. */
const halfBytes = 1_048_576;
const [firstStart, secondStart] = [0, halfBytes] as const;
type HalfStart = typeof firstStart | typeof secondStart;

/**
 * The batches that were written to the databases of a store lately, so that these need not be synced with every batch, and so that a
 * batch is in all of them or in none. A batch comes to the journal first, and is durable with it.
 *
 * One file in two halves, which are filled in turn. When one is full, what it holds is made durable in the databases while the
 * other is filled; so a half is written over only once nothing needs it. Its pages are written once at the beginning: to write over
 * them later changes no size, for which the file system would have to write more.
 */
export class Journal {
  readonly #parts: JournalParts;
  /** Waits for nothing. */
  readonly #file: FileHandle;
  /** The same file: a write is durable when it resolves. */
  readonly #durable: FileHandle;
  /** The last entry's. */
  #turn: number;
  /** The half that is filled. */
  #start: HalfStart;
  /** Offset of the next entry. */
  #at: number;
  /** An entry may not be durable yet. */
  #isBehind = false;
  #isEmpty: boolean;
  /** Offset of each half up to which a batch may have left bytes. */
  readonly #used = new Map<HalfStart, number>([
    [firstStart, secondStart],
    [secondStart, 2 * halfBytes],
  ]);
  /** Resolves when the batches of the half that is not filled now are durable in the databases. */
  #persisting: Promise<void> = Promise.resolve();

  private constructor(
    parts: JournalParts,
    file: FileHandle,
    durable: FileHandle,
    { turn, start, isEmpty }: JournalEnd,
  ) {
    this.#parts = parts;
    this.#file = file;
    this.#durable = durable;
    this.#turn = turn;
    this.#start = start;
    this.#at = start;
    this.#isEmpty = isEmpty;
  }

  /**
   * Opens the file and lets `take` write the batches that it holds to the databases, in their order; all are durable there when this
   * resolves. Throws DamageError where a batch cannot be read that another follows, or that the databases have: `written` is the turn
   * of the last one that they had while it was durable.
   */
  static async open(
    parts: JournalParts,
    written: number,
    take: (writes: readonly JournalWrite[]) => Promise<void>,
  ): Promise<Journal> {
    const file = await openFile(parts.path);
    try {
      await fillFile(file, parts.path);
      const { entries, end } = readEntries(await readAll(file));
      if (written > end.turn) throw new DamageError(0, `expected batch ${written} or later, got ${end.turn}`);
      for (const entry of entries) await take(entry.writes());
      if (!end.isEmpty) await parts.persist();
      const durable = await open(parts.path, constants.O_WRONLY | constants.O_DSYNC);
      return new Journal(parts, file, durable, end);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Adds a batch. With `sync` it is durable when this resolves, and so is every earlier one. Returns its turn. One call at a time. */
  async append(writes: readonly JournalWrite[], sync: boolean): Promise<number> {
    const pieces = await encodeEntry(this.#turn + 1, writes);
    let length = 0;
    for (const piece of pieces) length += piece.length;
    // One that is too large for either half goes to the second one, which ends with the file.
    const isOversize = this.#start === secondStart && length > halfBytes;
    if (this.#at + length > this.#start + halfBytes && !isOversize) await this.#turnOver();
    const isDirect = sync && !this.#isBehind;
    const { bytesWritten } = await (isDirect ? this.#durable : this.#file).writev(pieces, this.#at);
    if (bytesWritten !== length) throw new Error(`journal: expected ${length} bytes written, got ${bytesWritten}`);
    this.#isBehind ||= !sync;
    if (sync && !isDirect) await this.#sync();
    this.#at += length;
    this.#used.set(this.#start, Math.max(this.#used.get(this.#start) ?? 0, this.#at));
    this.#turn++;
    this.#isEmpty = writes.length === 0;
    return this.#turn;
  }

  /** Leaves no byte of any batch, once all are durable in the databases. */
  async erase(): Promise<void> {
    await this.#end();
    await this.#file.truncate(2 * halfBytes);
    for (const [start, used] of this.#used) {
      // Behind the entry that says that there is none.
      const from = start === this.#start ? this.#at : start;
      fillZeros(this.#file, from, Math.min(used, start + halfBytes));
      this.#used.set(start, from);
    }
    await this.#sync();
  }

  /**
   * Closes the file. Where the databases lack a batch, or cannot be made durable, all stay in it, and the next opening writes them to the
   * databases again.
   */
  async close(isWritten = true): Promise<void> {
    try {
      if (isWritten && !this.#isEmpty) await this.#end();
    } catch {
      // They stay.
    } finally {
      await this.#file.close();
      await this.#durable.close();
    }
  }

  async #turnOver(): Promise<void> {
    await this.#persisting;
    // What was not synced yet must not be missing before what is.
    if (this.#isBehind) await this.#sync();
    const persisting = this.#parts.persist();
    // Whoever needs the half awaits it.
    persisting.catch(() => undefined);
    this.#persisting = persisting;
    this.#start = otherHalf(this.#start);
    this.#at = this.#start;
    if (this.#start === secondStart) await this.#file.truncate(2 * halfBytes);
  }

  /** Makes all batches durable in the databases. None is in the journal then: an entry without writes follows no other. */
  async #end(): Promise<void> {
    await this.#turnOver();
    await this.#persisting;
    this.#turn++;
    await this.append([], true);
  }

  async #sync(): Promise<void> {
    await this.#file.datasync();
    this.#isBehind = false;
  }
}

/** The end that a journal goes on from. */
interface JournalEnd {
  /** The last entry's; 0 where there was none. */
  readonly turn: number;
  readonly start: HalfStart;
  readonly isEmpty: boolean;
}

/**
 * Returns the entries that may not be durable in the databases, in their order. The journal goes on in the half that has none of the
 * newest: one that is not written to its end leaves these.
 */
function readEntries(bytes: Buffer): { readonly entries: readonly JournalEntry[]; readonly end: JournalEnd } {
  const [first, second] = [readHalf(bytes, firstStart), readHalf(bytes, secondStart)];
  const isFirstNewer = turnOf(first[0]) > turnOf(second[0]);
  const [older, newer] = isFirstNewer ? [second, first] : [first, second];
  const isContinued = older.length > 0 && turnOf(older.at(-1)) + 1 === turnOf(newer[0]);
  const entries = isContinued ? [...older, ...newer] : newer;
  const turn = turnOf(entries.at(-1));
  refuseLater(bytes, turn);
  const isEmpty = entries.length === 0 || (entries.length === 1 && entries[0]?.writes().length === 0);
  return { entries, end: { turn, start: isFirstNewer ? secondStart : firstStart, isEmpty } };
}

function turnOf(entry: JournalEntry | undefined): number {
  return entry?.turn ?? 0;
}

function otherHalf(start: HalfStart): HalfStart {
  return start === firstStart ? secondStart : firstStart;
}

/** Returns the entries of a half, behind which some of an earlier turn may lie. */
function readHalf(bytes: Buffer, start: number): readonly JournalEntry[] {
  const entries: JournalEntry[] = [];
  for (let at = start; start === secondStart || at < secondStart; ) {
    const entry = decodeEntry(bytes, at);
    if (entry === undefined || entry.turn !== (entries.at(-1)?.turn ?? entry.turn - 1) + 1) break;
    entries.push(entry);
    at = entry.end;
  }
  return entries;
}

/** An entry is written once the one before it is there: one that is missing amid others was there. */
function refuseLater(bytes: Buffer, last: number): void {
  for (let at = 0; at < bytes.length; at += pageBytes) {
    const turn = decodeEntry(bytes, at)?.turn ?? 0;
    if (turn > last) throw new DamageError(at, `expected no batch after ${last}, got ${turn}`);
  }
}

async function openFile(path: string): Promise<FileHandle> {
  const known = await open(path, "r+").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return known ?? open(path, "w+", 0o600);
}

/** Writes the pages that a file has not yet. */
async function fillFile(file: FileHandle, path: string): Promise<void> {
  const { size } = await file.stat();
  if (size >= 2 * halfBytes) return;
  fillZeros(file, size - (size % pageBytes), 2 * halfBytes);
  await file.sync();
  await syncFolder(dirname(path));
}

/** Page by page: the kernel keeps what is written at once together, and writes all of it for one page later. */
function fillZeros({ fd }: FileHandle, start: number, end: number): void {
  const page = Buffer.alloc(pageBytes);
  for (let at = start; at < end; at += pageBytes) writeSync(fd, page, 0, pageBytes, at);
}

async function readAll(file: FileHandle): Promise<Buffer> {
  const { size } = await file.stat();
  const bytes = Buffer.allocUnsafe(size);
  const { bytesRead } = await file.read(bytes, 0, size, 0);
  return bytes.subarray(0, bytesRead);
}

/**
 * Returns the bytes of an entry, in pieces, to the end of its last page: a list of keys and values, deflated where that can save a page,
 * and behind it the values that are large, or dense already, as private fields are.
 */
async function encodeEntry(turn: number, writes: readonly JournalWrite[]): Promise<readonly Uint8Array[]> {
  const [near, behind]: [Uint8Array[], Uint8Array[]] = [[], []];
  let behindBytes = 0;
  for (const { key, value } of writes) {
    const bytes = value ?? nothing;
    const isBehind = bytes.length >= minLarge || bytes[0] === base64Form;
    const head = Buffer.allocUnsafe(lengthBytes + Buffer.byteLength(key));
    const keyBytes = head.write(key, lengthBytes);
    head.writeUInt32LE(isBehind ? keyBytes + behindMark : keyBytes);
    head.writeUInt32LE(value === null ? isDeleted : bytes.length, 4);
    near.push(head);
    (isBehind ? behind : near).push(bytes);
    if (isBehind) behindBytes += bytes.length;
  }
  const plain = Buffer.concat(near);
  const inflated = headerBytes + plain.length + behindBytes > pageBytes ? plain.length : 0;
  let list = plain;
  if (inflated > deflatedHere) list = await deflate(plain, fastest);
  else if (inflated > 0) list = deflateRawSync(plain, fastest);
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32LE(list.length, 4);
  header.writeUInt32LE(inflated, 8);
  header.writeUInt32LE(behindBytes, 12);
  header.writeUIntLE(turn, 16, turnBytes);
  const length = headerBytes + list.length + behindBytes;
  const pieces = [list, ...behind, Buffer.alloc((pageBytes - (length % pageBytes)) % pageBytes)];
  let sum = crc32(header.subarray(4));
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += summedBytes) {
      // Others come between the parts of a large value.
      if (at > 0) await setImmediate();
      sum = crc32(piece.subarray(at, at + summedBytes), sum);
    }
  }
  header.writeUInt32LE(sum);
  return [header, ...pieces];
}

/** Returns the entry that begins at an offset; undefined where there is none, or one that was not written to its end. */
function decodeEntry(bytes: Buffer, offset: number): JournalEntry | undefined {
  if (offset + headerBytes > bytes.length) return undefined;
  const [list, inflated, behind] = [4, 8, 12].map((at) => bytes.readUInt32LE(offset + at)) as [number, number, number];
  const listEnd = offset + headerBytes + list;
  const end = Math.ceil((listEnd + behind) / pageBytes) * pageBytes;
  if (end > bytes.length || crc32(bytes.subarray(offset + 4, end)) !== bytes.readUInt32LE(offset)) return undefined;
  return {
    turn: bytes.readUIntLE(offset + 16, turnBytes),
    end,
    writes: () => {
      const found = bytes.subarray(offset + headerBytes, listEnd);
      return readList(inflated === 0 ? found : inflateRawSync(found, { maxOutputLength: inflated }), bytes, listEnd);
    },
  };
}

function readList(list: Buffer, bytes: Buffer, valuesStart: number): readonly JournalWrite[] {
  const writes: JournalWrite[] = [];
  let valuesAt = valuesStart;
  for (let at = 0; at < list.length; ) {
    const [keyLength, valueLength] = [list.readUInt32LE(at), list.readUInt32LE(at + 4)];
    const keyEnd = at + lengthBytes + (keyLength % behindMark);
    const key = list.toString("utf8", at + lengthBytes, keyEnd);
    at = keyEnd;
    if (valueLength === isDeleted) writes.push({ key, value: null });
    else if (keyLength >= behindMark) {
      writes.push({ key, value: bytes.subarray(valuesAt, valuesAt + valueLength) });
      valuesAt += valueLength;
    } else {
      at += valueLength;
      writes.push({ key, value: list.subarray(keyEnd, at) });
    }
  }
  return writes;
}
