import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { sha256Hex } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";

/** The last record of a chain that was acknowledged. `seq` −1: the chain is named and holds nothing yet. */
export interface Mark {
  readonly tenant: string;
  readonly chain: string;
  readonly seq: number;
  readonly head: string;
}

/**
 * The last acknowledged record of each chain, kept apart from the store: LevelDB recovers from damage by dropping what it cannot
 * read, and only a second source can distinguish a chain that was cut from one that was never longer.
 */
export interface HighWater {
  /** The marks as of now, by tenant. */
  readonly marks: ReadonlyMap<string, Mark>;
  /** Raises marks. Durable when it resolves; when it rejects, each mark is the old or the new one. */
  advance(marks: Iterable<Mark>): Promise<void>;
  close(): Promise<void>;
}

interface Slot {
  readonly index: number;
  /** Counts the writes of this mark; the next one goes to the page that `turn + 1` is even or odd for. */
  readonly turn: number;
}

const pageSize = 4096;

/**
 * One file for all tenants, two pages of 4 KiB each. Writes alternate between the two, and each page carries its own
 * checksum, so a torn write costs at most the mark being written, never the one before or a neighbour's.
 */
export class HighWaterFile implements HighWater {
  readonly #handle: FileHandle;
  readonly #marks = new Map<string, Mark>();
  readonly #slots = new Map<string, Slot>();
  #nextIndex = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Opens or creates (mode 0600) the file. Throws STATE_UNUSABLE where an entry is damaged beyond its twin. */
  static async open(path: string): Promise<HighWaterFile> {
    const handle = await openFile(path);
    const file = new HighWaterFile(handle);
    try {
      await file.#load(path);
      return file;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  get marks(): ReadonlyMap<string, Mark> {
    return this.#marks;
  }

  async advance(marks: Iterable<Mark>): Promise<void> {
    const written: { readonly mark: Mark; readonly slot: Slot }[] = [];
    const writes: Promise<{ readonly bytesWritten: number }>[] = [];
    for (const mark of marks) {
      const current = this.#slots.get(mark.tenant) ?? { index: this.#nextIndex++, turn: -1 };
      this.#slots.set(mark.tenant, current); // a place is taken at once: two new tenants in one batch need two
      const slot = { index: current.index, turn: current.turn + 1 };
      written.push({ mark, slot });
      const line = JSON.stringify({ format: 1, turn: slot.turn, ...mark });
      const page = Buffer.alloc(pageSize);
      page.write(`${line}\n${sha256Hex(line)}\n`);
      writes.push(this.#handle.write(page, 0, pageSize, (slot.index * 2 + (slot.turn % 2)) * pageSize));
    }
    if (writes.length === 0) return;
    for (const { bytesWritten } of await Promise.all(writes)) {
      if (bytesWritten === pageSize) continue;
      throw new Error(`high-water: expected ${pageSize} bytes written, got ${bytesWritten}`);
    }
    await this.#handle.datasync();
    // Only now: after a failure the next attempt must write the same page, not the one that is still good.
    for (const { mark, slot } of written) {
      this.#marks.set(mark.tenant, mark);
      this.#slots.set(mark.tenant, slot);
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #load(path: string): Promise<void> {
    const pair = Buffer.alloc(pageSize * 2);
    for (let index = 0; ; index++) {
      pair.fill(0);
      const { bytesRead } = await this.#handle.read(pair, 0, pair.length, index * pair.length);
      if (bytesRead === 0) return;
      this.#nextIndex = index + 1;
      const found = newest(decodePage(pair.subarray(0, pageSize)), decodePage(pair.subarray(pageSize)));
      if (found !== undefined) {
        this.#marks.set(found.mark.tenant, found.mark);
        this.#slots.set(found.mark.tenant, { index, turn: found.turn });
      } else if (!isUnborn(pair)) throw damaged(path, index);
    }
  }
}

/** Marks of a store in memory. */
export class HighWaterMemory implements HighWater {
  readonly #marks = new Map<string, Mark>();

  get marks(): ReadonlyMap<string, Mark> {
    return this.#marks;
  }

  async advance(marks: Iterable<Mark>): Promise<void> {
    for (const mark of marks) this.#marks.set(mark.tenant, mark);
  }

  async close(): Promise<void> {}
}

interface Page {
  readonly mark: Mark;
  readonly turn: number;
}

function decodePage(page: Buffer): Page | undefined {
  const [line, checksum] = page.toString("utf8").split("\n", 2);
  if (line === undefined || checksum !== sha256Hex(line)) return undefined;
  const { turn, tenant, chain, seq, head } = JSON.parse(line) as Mark & { readonly turn: number };
  return { mark: { tenant, chain, seq, head }, turn };
}

function newest(a: Page | undefined, b: Page | undefined): Page | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a.turn > b.turn ? a : b;
}

/**
 * A pair whose first write never finished: one page was never written. Nothing was promised by it, and a tenant that
 * has records without a mark is refused, so zeroing a pair hides nothing.
 */
function isUnborn(pair: Buffer): boolean {
  const blank = Buffer.alloc(pageSize);
  return blank.equals(pair.subarray(0, pageSize)) || blank.equals(pair.subarray(pageSize));
}

/** A device or a pipe keeps no marks, and reads without an end. */
async function openFile(path: string): Promise<FileHandle> {
  try {
    const handle = await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK, 0o600);
    if (!(await handle.stat()).isFile()) {
      await handle.close();
      throw new Error(`expected a regular file at \`${path}\``);
    }
    const folder = await open(dirname(path), "r");
    await folder.sync();
    await folder.close();
    return handle;
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : String(cause);
    throw new GatewayError("STATE_UNUSABLE", `high-water marks cannot be opened (${text})`, { cause });
  }
}

function damaged(path: string, index: number): GatewayError {
  return new GatewayError(
    "STATE_UNUSABLE",
    `high-water mark ${index} in \`${path}\` is damaged; restore the file from the newest backup`,
  );
}
