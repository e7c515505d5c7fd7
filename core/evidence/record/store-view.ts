import type { AbstractSnapshot } from "abstract-level";
import { GatewayError } from "../../action/error.ts";
import type { KeyRange } from "../../store/key-range.ts";
import { TreeFault } from "../tree/merkle.ts";
import type { EvidenceStore } from "./key-space.ts";

/** The store, as of one moment. */
export interface Reader {
  get(key: string): Promise<string | undefined>;
}

/** Entries of a range in the order of their keys. */
export interface EntryReader extends AsyncDisposable {
  /** Undefined after the last. */
  next(): Promise<[string, string] | undefined>;
  /** At most `size` entries, and some hundred kilobytes, at once; none after the last. */
  nextv(size: number): Promise<[string, string][]>;
}

/** The entries of a store, on whichever thread they are read. */
export interface ChainView extends Reader {
  getMany(keys: readonly string[]): Promise<(string | undefined)[]>;
  values(range: RangeOptions): Promise<string[]>;
  read(range: RangeOptions): EntryReader;
}

/** Both engines take it; the abstract interface does not name it. */
export const chunkSize: object = { highWaterMarkBytes: 262_144 };

/** The store as it was at one moment; without a snapshot, as it is. */
export class StoreView implements ChainView {
  readonly #store: EvidenceStore;
  readonly #snapshot: AbstractSnapshot | undefined;

  constructor(store: EvidenceStore, snapshot?: AbstractSnapshot) {
    this.#store = store;
    this.#snapshot = snapshot;
  }

  get(key: string): Promise<string | undefined> {
    return this.#store.get(key, { snapshot: this.#snapshot });
  }

  getMany(keys: readonly string[]): Promise<(string | undefined)[]> {
    return this.#store.getMany([...keys], { snapshot: this.#snapshot });
  }

  values(range: RangeOptions): Promise<string[]> {
    return this.#store.values({ ...range, snapshot: this.#snapshot }).all();
  }

  /** Keys and values of a range, one after another. */
  entries(range: RangeOptions): AsyncIterable<[string, string]> {
    return this.#store.iterator({ ...range, snapshot: this.#snapshot });
  }

  read(range: RangeOptions): EntryReader {
    return this.#store.iterator({ ...range, snapshot: this.#snapshot, ...chunkSize });
  }
}

export interface RangeOptions extends KeyRange {
  readonly reverse?: boolean;
  readonly limit?: number;
}

const closedCodes: ReadonlySet<unknown> = new Set([
  "LEVEL_DATABASE_NOT_OPEN",
  "LEVEL_ITERATOR_NOT_OPEN",
  "LEVEL_SNAPSHOT_NOT_OPEN",
]);

/** True where the store was closed under a reader, by a stop or a repair: that is no statement about its content. */
export function isClosedFault(error: unknown): boolean {
  return closedCodes.has(codeOf(error));
}

/** Maps a failed read of the store, and a hole in a tree, to EVIDENCE_UNAVAILABLE; returns any other error unchanged. */
export function readFault(error: unknown): unknown {
  if (error instanceof TreeFault) {
    return new GatewayError("EVIDENCE_UNAVAILABLE", `the chain cannot be proven: ${error.message}`, { cause: error });
  }
  if (!String(codeOf(error)).startsWith("LEVEL_")) return error;
  return new GatewayError("EVIDENCE_UNAVAILABLE", "the store cannot be read; see the log", { cause: error });
}

/** The message of the innermost cause: the database wraps it in an error that says only that it is not open. */
export function rootMessage(error: unknown): string {
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  return cause instanceof Error ? cause.message : String(cause);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
