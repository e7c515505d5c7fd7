import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import { compileGlob, type Glob } from "../../action/glob.ts";
import type { Random } from "../../action/id.ts";
import type { KeyRange } from "../../store/key-range.ts";
import type { Pace } from "../../store/pace.ts";
import type { ChainTable, EvidenceChain } from "../chain/chain-table.ts";
import type { Writer } from "../chain/writer.ts";
import { pieceKeys } from "../private/entry-piece.ts";
import { releaseHeld } from "../private/held-action.ts";
import {
  type Disclosure,
  type PrivateField,
  type PrivateMember,
  privateMembers,
  readDisclosure,
  sealDisclosure,
} from "../private/private-field.ts";
import { type EvidenceStore, privateRanges, recordKey, sessionRecordRange } from "../record/key-space.ts";

export interface ErasureRequest {
  /** The records whose fields are erased: all of a session, or one. */
  readonly of: { readonly session: string } | { readonly seq: number };
  /**
   * Globs over `<member>.<field>`: `arguments.password`, `output.*`, `facts.hosts`. What was stored without a name fits
   * `<member>.*` only. Where an argument goes, all facts of its action go: they repeat it.
   */
  readonly fields: readonly string[];
  readonly reason: string;
  /** The person or tool that asked for it. */
  readonly by: string;
}

export interface Erased {
  /** Records that lost a field, in order. */
  readonly seqs: readonly number[];
  readonly fields: number;
}

interface ErasureParts {
  readonly store: EvidenceStore;
  readonly chains: ChainTable;
  readonly writer: Writer;
  readonly random: Random;
}

/**
 * Rewrites a range of the store's files, so that overwritten and deleted values are no longer on the disk.
 * No older snapshot may be open by then: the store keeps everything that one can still see.
 */
export type Compact = (range: KeyRange) => Promise<void>;

/** Records that share one `redaction` record and one batch. */
const maxAtOnce = 256;

/** Erases private fields for good. The records, and every digest and proof over them, stay as they are. */
export class Erasure {
  readonly #parts: ErasureParts;
  /** Erasures run one at a time: two that read the same entry would each restore what the other erased. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: ErasureParts) {
    this.#parts = parts;
  }

  /**
   * Reduces each field that fits to its commitment, with a `redaction` record in the same batch;
   * when it resolves the bytes are gone from the disk. After an error it can be repeated: erased fields stay erased.
   * Throws NOT_FOUND where the tenant has no such session or record, EVIDENCE_UNAVAILABLE where an entry is damaged, and
   * the reason of the pace's signal. No prune of the tenant may run meanwhile.
   */
  erase(tenant: string, request: ErasureRequest, compact: Compact, pace?: Pace): Promise<Erased> {
    const erased = this.#last.then(() => this.#erase(tenant, request, compact, pace));
    this.#last = erased.catch(() => undefined);
    return erased;
  }

  async #erase(tenant: string, request: ErasureRequest, compact: Compact, pace: Pace | undefined): Promise<Erased> {
    const chain = this.#parts.chains.get(tenant);
    const seqs = await this.findRecords(tenant, request.of);
    const ranges = privateRanges(tenant, seqs[0] as number, seqs.at(-1) as number);
    // Before, too: an old value that still lies in the log would reach the disk's tables beside its successor, in one
    // file that no later compaction has a reason to rewrite.
    for (const range of ranges) await compact(range);
    const globs = request.fields.map(compileGlob);
    const erased: number[] = [];
    let fields = 0;
    const pieces: string[] = [];
    for (let at = 0; at < seqs.length; at += maxAtOnce) {
      const found = await this.#eraseSome(chain, seqs.slice(at, at + maxAtOnce), globs, request);
      erased.push(...found.seqs);
      fields += found.fields;
      pieces.push(...found.pieces);
      await pace?.rest();
    }
    // Also where nothing was left to erase: an earlier attempt may have ended before this.
    for (const range of ranges) await compact(range);
    // Their key is gone with the entries. They themselves may lie before the first record.
    const [firstPiece] = pieces.sort();
    const lt = recordKey(tenant, (seqs.at(-1) as number) + 1, "piece");
    if (firstPiece !== undefined) await compact({ gte: firstPiece, lt });
    return { seqs: erased, fields };
  }

  async #eraseSome(
    chain: EvidenceChain,
    seqs: readonly number[],
    globs: readonly Glob[],
    { fields: patterns, reason, by }: ErasureRequest,
  ): Promise<Erased & { readonly pieces: readonly string[] }> {
    const { store, writer, random } = this.#parts;
    const operations: BatchOperation[] = [];
    const erased: number[] = [];
    const pieces: string[] = [];
    let fields = 0;
    for (const seq of seqs) {
      const place = { tenant: chain.tenant, chain: chain.id, seq };
      const disclosure = await readDisclosure(store, chain.wrapping, place);
      const { rest, count } = eraseFields(disclosure ?? {}, globs);
      if (count === 0) continue;
      operations.push(sealDisclosure(chain.wrapping, place, rest, random));
      // The key that an earlier version stored opens the former entry, which a backup may hold.
      operations.push({ type: "del", key: recordKey(chain.tenant, seq, "data-key") });
      // What is left is whole.
      operations.push({ type: "del", key: recordKey(chain.tenant, seq, "pieces") });
      // An action that waits for review has its own copy; without it, it can no longer be approved.
      operations.push(releaseHeld(chain.tenant, seq));
      pieces.push(...(await this.#findPieces(chain.tenant, seq)));
      erased.push(seq);
      fields += count;
    }
    if (erased.length === 0) return { seqs: [], fields: 0, pieces };
    for (const key of pieces) operations.push({ type: "del", key });
    writer.commit.admit("bounded");
    const detail = { event: "erased", seqs: erased, fields: patterns, reason, by };
    await writer.appendEvent(chain, { kind: "redaction", detail }, operations);
    return { seqs: erased, fields, pieces };
  }

  async #findPieces(tenant: string, seq: number): Promise<readonly string[]> {
    const place = await this.#parts.store.get(recordKey(tenant, seq, "pieces"));
    return place === undefined ? [] : pieceKeys(tenant, place);
  }

  /** The records of a request, in order. Throws NOT_FOUND where the tenant has no such session or record. */
  async findRecords(tenant: string, of: ErasureRequest["of"]): Promise<readonly number[]> {
    const { store } = this.#parts;
    if ("seq" in of) {
      const there = (await store.get(recordKey(tenant, of.seq))) !== undefined;
      if (!there) throw new GatewayError("NOT_FOUND", `the tenant has no record ${of.seq}`);
      return [of.seq];
    }
    const seqs = (await store.values(sessionRecordRange(tenant, of.session)).all()).map(Number);
    if (seqs.length === 0) throw new GatewayError("NOT_FOUND", "the tenant has no such session");
    return seqs;
  }
}

/** Returns the rest of a private entry and the number of fields that were erased. */
function eraseFields(disclosure: Disclosure, globs: readonly Glob[]): { rest: Disclosure; count: number } {
  const rest: { [member in PrivateMember]?: readonly PrivateField[] } = {};
  let count = 0;
  for (const member of privateMembers) {
    const fields = disclosure[member];
    if (fields === undefined) continue;
    // Facts come last, and their record has no output: what was erased by now are arguments.
    const isRepeated = member === "facts" && count > 0;
    rest[member] = fields.map((field) => {
      if (field.salt === undefined || !(isRepeated || globs.some((glob) => fits(glob, member, field)))) return field;
      count++;
      return { commitment: field.commitment };
    });
  }
  return { rest, count };
}

function fits(glob: Glob, member: PrivateMember, { name }: PrivateField): boolean {
  return name === undefined ? glob.pattern === `${member}.*` || glob.pattern === "*" : glob.test(`${member}.${name}`);
}
