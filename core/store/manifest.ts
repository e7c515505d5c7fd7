import { DamageError, type FileWindow } from "./file-window.ts";
import { checkLogFile } from "./log-file.ts";
import { VarintReader } from "./varint.ts";

/** The files that a store consists of, as its manifest says. */
export interface StoreLayout {
  /** Bytes of each table by its number. */
  readonly tables: ReadonlyMap<number, number>;
  /** Logs from this number on hold entries that are in no table; 0 before the first. */
  readonly log: number;
  /** A log of an older format that does as well; 0 where there is none. */
  readonly formerLog: number;
}

/** Bytes of the largest change: the first names every table, with a hundred bytes for each. */
const maxEditBytes = 67_108_864;

/** Reads a manifest: a log of changes. Throws DamageError where it is damaged, and where it says too little. */
export async function readManifest(file: FileWindow): Promise<StoreLayout> {
  const state = new ManifestState();
  let pieces: Buffer[] = [];
  let bytes = 0;
  await checkLogFile(file, "changes", (piece, offset) => {
    if (piece === null) {
      state.apply(new VarintReader(Buffer.concat(pieces), offset, "a change of the store's files"));
      [pieces, bytes] = [[], 0];
      return;
    }
    bytes += piece.length;
    if (bytes > maxEditBytes) throw new DamageError(offset, `expected a change of at most ${maxEditBytes} bytes`);
    pieces.push(Buffer.from(piece));
  });
  return state.layout(file.size);
}

const tags = {
  comparator: 1,
  log: 2,
  nextFile: 3,
  lastSequence: 4,
  compactPointer: 5,
  deletedTable: 6,
  newTable: 7,
  formerLog: 9,
} as const;

/** The changes of a manifest so far. */
class ManifestState {
  /** Bytes of each table by level and number: a table that moves is deleted in one level and new in another. */
  readonly #tables = new Map<string, { readonly number: number; readonly size: number }>();
  readonly #numbers = new Map<number, number>();

  /** Deletions come first in each change, so that its order is that of LevelDB. */
  apply(edit: VarintReader): void {
    while (!edit.isAtEnd) {
      const tag = edit.next();
      switch (tag) {
        case tags.comparator:
          skipText(edit);
          break;
        case tags.compactPointer:
          edit.next();
          skipText(edit);
          break;
        case tags.log:
        case tags.nextFile:
        case tags.lastSequence:
        case tags.formerLog:
          this.#numbers.set(tag, edit.next());
          break;
        case tags.deletedTable:
          this.#tables.delete(`${edit.next()}/${edit.next()}`);
          break;
        case tags.newTable:
          this.#addTable(edit);
          break;
        default:
          throw edit.fault();
      }
    }
  }

  #addTable(edit: VarintReader): void {
    const level = edit.next();
    const number = edit.next();
    const size = edit.next();
    skipText(edit); // smallest key
    skipText(edit); // largest key
    this.#tables.set(`${level}/${number}`, { number, size });
  }

  /** Throws DamageError where LevelDB would not open the store. */
  layout(end: number): StoreLayout {
    const log = this.#numbers.get(tags.log);
    if (log === undefined || !this.#numbers.has(tags.nextFile) || !this.#numbers.has(tags.lastSequence)) {
      throw new DamageError(end, "the manifest ends before it names the log, the next file and the last entry");
    }
    const tables = new Map([...this.#tables.values()].map(({ number, size }) => [number, size]));
    return { tables, log, formerLog: this.#numbers.get(tags.formerLog) ?? 0 };
  }
}

/** Skips bytes that stand after their length. */
function skipText(edit: VarintReader): void {
  edit.skip(edit.next());
}
