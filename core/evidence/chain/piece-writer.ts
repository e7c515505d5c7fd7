import type { BatchOperation } from "../../action/commit-hook.ts";
import type { Random } from "../../action/id.ts";
import type { Json } from "../../action/json.ts";
import { jsonPieces } from "../../action/json-pieces.ts";
import type { Turns } from "../../action/turns.ts";
import { lastPart } from "../../store/key-range.ts";
import { drawPieceKey, pieceKeys, piecePlace, sealPiece } from "../private/entry-piece.ts";
import { piecedText } from "../private/private-field.ts";
import {
  type EvidenceStore,
  openGroupKey,
  openGroupRange,
  pieceGroup,
  pieceKey,
  pieceRange,
  recordKey,
} from "../record/key-space.ts";
import type { BatchWrite } from "./batch-value.ts";
import type { EvidenceChain } from "./chain-table.ts";
import type { GroupCommit } from "./group-commit.ts";

/** Private fields that are to be written. */
export interface LargeFields {
  readonly chain: EvidenceChain;
  readonly value: Json;
  /** As `GroupCommit.admit` takes it. */
  readonly kind: "bounded" | "outcome";
  readonly turns: Turns;
  /** Told of the bytes of each piece before it is written. */
  readonly onPiece?: (bytes: number) => void;
}

/** The private fields of a record, ready for it. */
export interface WrittenFields {
  /** Sealed in the entry of the record: the fields, or the key of their pieces. */
  readonly text: string;
  /** Left out where the fields are whole. */
  readonly pieces?: WrittenPieces;
}

/** Bytes of a piece: with what goes beside it, 4 fit into a half of the store's journal. */
const pieceBytes = 253_952;
const idBytes = 16;

/**
 * Writes the private fields of large records, in pieces, ahead of their record: what others have to record waits for one piece and not
 * for all. They are durable with the record, or nothing can read them: the key of the pieces is in the record's batch alone. A
 * tenant's large records go to the store one at a time.
 */
export class PieceWriter {
  readonly #commit: GroupCommit;
  readonly #random: Random;
  /** The newest large record of each tenant. */
  readonly #newest = new Map<string, Promise<void>>();
  /** Keys of the groups that this process writes, or whose record it does. */
  readonly #open = new Set<string>();

  constructor(commit: GroupCommit, random: Random) {
    this.#commit = commit;
    this.#random = random;
  }

  /**
   * Resolves with the fields, in a turn of its own, once they can be recorded. Where they are in pieces, these are durable then, and no
   * other large record of the tenant begins until their `end` is called. Throws as `GroupCommit.submit` does.
   */
  async write({ chain, value, kind, turns, onPiece }: LargeFields): Promise<WrittenFields> {
    const filled = Buffer.allocUnsafeSlow(pieceBytes);
    let length = 0;
    let pieces: WrittenPieces | undefined;
    const flush = async (): Promise<void> => {
      pieces ??= await this.#begin(chain, kind);
      onPiece?.(length);
      await pieces.add(filled.subarray(0, length));
      length = 0;
      await turns.next();
    };
    try {
      for (const text of jsonPieces(value)) {
        const bytes = Buffer.from(text);
        for (let at = 0; at < bytes.length; ) {
          if (length === pieceBytes) await flush();
          const copied = bytes.copy(filled, length, at);
          length += copied;
          at += copied;
        }
        await turns.spend(text.length);
      }
      if (pieces === undefined) {
        await turns.next();
        return { text: filled.toString("utf8", 0, length) };
      }
      await flush();
      await pieces.settled();
      return { text: pieces.text, pieces };
    } catch (error) {
      await pieces?.end();
      throw error;
    }
  }

  async #begin(chain: EvidenceChain, kind: LargeFields["kind"]): Promise<WrittenPieces> {
    const { tenant } = chain;
    const before = this.#newest.get(tenant);
    let leave = (): void => undefined;
    const own = new Promise<void>((resolve) => {
      leave = resolve;
    });
    this.#newest.set(tenant, own);
    await before;
    const group = pieceGroup(Math.max(chain.head.seq, 0), Buffer.from(this.#random(idBytes)).toString("hex"));
    const openKey = openGroupKey(tenant, group);
    this.#open.add(openKey);
    return new WrittenPieces({
      commit: this.#commit,
      random: this.#random,
      tenant,
      group,
      kind,
      onEnd: () => {
        this.#open.delete(openKey);
        if (this.#newest.get(tenant) === own) this.#newest.delete(tenant);
        leave();
      },
    });
  }

  /**
   * Returns the writes that delete the pieces in the store which no record has, and which this process does not write. Call while nothing
   * is appended.
   */
  async findAbandoned(store: EvidenceStore, tenants: readonly string[]): Promise<readonly BatchOperation[]> {
    const keys: string[] = [];
    for (const tenant of tenants) {
      for (const openKey of await store.keys(openGroupRange(tenant)).all()) {
        if (this.#open.has(openKey)) continue;
        keys.push(openKey, ...(await store.keys(pieceRange(tenant, lastPart(openKey))).all()));
      }
    }
    return keys.map((key) => ({ type: "del", key }));
  }
}

interface PiecesParts {
  readonly commit: GroupCommit;
  readonly random: Random;
  readonly tenant: string;
  readonly group: string;
  readonly kind: LargeFields["kind"];
  readonly onEnd: () => void;
}

/** The pieces of one record's private fields. */
export class WrittenPieces {
  readonly #parts: PiecesParts;
  readonly #key: Uint8Array;
  #count = 0;
  #last: Promise<void> = Promise.resolve();
  #isTaken = false;

  constructor(parts: PiecesParts) {
    this.#parts = parts;
    this.#key = drawPieceKey(parts.random);
  }

  /** Sealed by the entry of their record in place of the fields. */
  get text(): string {
    return piecedText(this.#key, this.#count);
  }

  /** Adds a piece, which is written while the next one is made. */
  async add(plain: Uint8Array): Promise<void> {
    const { commit, random, tenant, group, kind } = this.#parts;
    const index = this.#count++;
    const key = pieceKey(tenant, group, index);
    const writes: BatchWrite[] = [{ type: "put", key, value: sealPiece(this.#key, key, plain, random) }];
    if (index === 0) writes.push({ type: "put", key: this.#openKey, value: "" });
    await this.#last;
    commit.admit(kind);
    this.#last = commit.submitWrites(writes);
    // Whoever adds the next one, or waits for all, learns of it.
    this.#last.catch(() => undefined);
  }

  /** Resolves when every piece is durable. */
  settled(): Promise<void> {
    return this.#last;
  }

  /** Returns the writes that commit with the record `seq`, which has the pieces then. */
  take(seq: number): readonly BatchOperation[] {
    const { tenant, group } = this.#parts;
    this.#isTaken = true;
    return [
      { type: "del", key: this.#openKey },
      { type: "put", key: recordKey(tenant, seq, "pieces"), value: piecePlace(group, this.#count) },
    ];
  }

  /** Lets the tenant's next large record begin. What no record took is deleted; where that fails, the next start does it. */
  async end(): Promise<void> {
    const { commit, tenant, group, onEnd } = this.#parts;
    try {
      await this.#last;
      if (this.#isTaken) return;
      const keys = [this.#openKey, ...pieceKeys(tenant, piecePlace(group, this.#count))];
      commit.admit("outcome");
      await commit.submitWrites(keys.map((key) => ({ type: "del", key })));
    } catch {
      // What failed was said to whoever waited for it.
    } finally {
      onEnd();
    }
  }

  get #openKey(): string {
    return openGroupKey(this.#parts.tenant, this.#parts.group);
  }
}
