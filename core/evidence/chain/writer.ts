import { sha256Hex } from "../../action/canonical-json.ts";
import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { SessionScope } from "../../action/principal.ts";
import { forgetOldest } from "../../action/recent-map.ts";
import type { SigningKey } from "../../action/signing-key.ts";
import { genesisDetail, rotationDetail } from "../key/key-history.ts";
import { privateEntry } from "../private/private-field.ts";
import {
  type EvidenceStore,
  eventKey,
  keyRecordKey,
  recordKey,
  sessionKey,
  sessionOrderKey,
} from "../record/key-space.ts";
import { isChainFault } from "../record/reason.ts";
import { type ActionRecord, noHash, type RecordedSession } from "../record/record.ts";
import { isAction, readRecord } from "../record/record-text.ts";
import { readFault } from "../record/store-view.ts";
import { checkpointSigner } from "../tree/checkpoint.ts";
import type { BatchWrite } from "./batch-value.ts";
import type { EvidenceChain } from "./chain-table.ts";
import { GroupCommit, type GroupCommitOptions } from "./group-commit.ts";
import {
  type ActionContent,
  type EventContent,
  type Sealed,
  type Stamp,
  sealActionRecord,
  sealEventRecord,
} from "./seal.ts";
import { parseSessionSummary, type SessionSummary } from "./session-record.ts";

/** The place of an action in its chain and its session. */
export type PlacedAction = Pick<ActionRecord, "tenant" | "seq"> & {
  readonly session: Pick<ActionRecord["session"], "id" | "index">;
};

/** A step of an action that has its place and its bytes, and is not accepted yet. */
interface SealedAction {
  readonly sealed: Sealed<ActionRecord>;
  readonly place: SessionPlace;
}

/**
 * Gives records their place in chain and session and hands them to the group commit. Sealing is synchronous: the order
 * of the calls is the order of the chain. What `append…` returns resolves when the record is durable.
 *
 * INVARIANT: `commit.admit`, `sealAction` and `append…` happen in one turn, so that nothing is sealed that the group commit
 * does not accept, and nothing else comes between a record and the one it follows.
 */
export class Writer {
  readonly commit: GroupCommit;
  readonly #sessions: SessionHeads;
  #stamp: Stamp;

  constructor(options: GroupCommitOptions, stamp: Stamp) {
    this.commit = new GroupCommit(options);
    // All that can wait for the disk: decisions and events up to the limit, and outcomes of as many open decisions.
    this.#sessions = new SessionHeads(options.store, 2 * options.limit + 1);
    this.#stamp = stamp;
  }

  updateConfigDigest(configDigest: string): void {
    this.#stamp = { ...this.#stamp, configDigest };
  }

  /** Seals a step of an action at the next place of its chain and session; `appendAction` takes that place. */
  sealAction(chain: EvidenceChain, content: ActionContent): SealedAction {
    if (chain.head.seq < 0) this.#appendGenesis(chain);
    const place = this.#sessions.next(chain, content.session);
    return { sealed: sealActionRecord(content, chain, place.session, this.#stamp), place };
  }

  /**
   * Appends the step that was just sealed, with the text of its private fields. `operations` commit with it; the writer adds
   * its own.
   */
  appendAction(
    chain: EvidenceChain,
    { sealed, place }: SealedAction,
    operations: BatchOperation[],
    disclosure?: string,
  ): Promise<void> {
    const writes: BatchWrite[] = operations;
    writes.push(...this.#sessions.advance(place, sealed));
    if (disclosure !== undefined) {
      const at = { tenant: chain.tenant, chain: chain.id, seq: sealed.record.seq };
      const value = privateEntry(chain.wrapping, at, disclosure, this.#stamp.random);
      writes.push({ type: "put", key: recordKey(at.tenant, at.seq, "disclosure"), value });
    }
    return this.commit.submit(chain, sealed, writes);
  }

  /** Appends an event. `operations` commit with it, or not at all. */
  appendEvent(chain: EvidenceChain, content: EventContent, operations: readonly BatchOperation[] = []): Promise<void> {
    if (chain.head.seq < 0) this.#appendGenesis(chain);
    const sealed = sealEventRecord(content, chain, this.#stamp);
    return this.commit.submit(chain, sealed, [...operations, listEvent(chain, sealed, content)]);
  }

  /** Appends the rotation to another key: a record, and a checkpoint over it, that both keys sign. */
  appendRotation(chain: EvidenceChain, successor: SigningKey): Promise<void> {
    if (chain.head.seq < 0) this.#appendGenesis(chain);
    const place = { chain: chain.id, seq: chain.head.seq + 1, prevHash: chain.head.hash };
    const detail = rotationDetail(place, chain.signer.key, successor);
    const sealed = sealEventRecord({ kind: "key", detail }, chain, this.#stamp);
    const next = checkpointSigner(chain.id, successor);
    const signature = { signers: [chain.signer, next], keep: true };
    const durable = this.commit.submit(chain, sealed, [listKey(chain, sealed, successor)], signature);
    chain.signer = next;
    return durable;
  }

  /**
   * Deletes the keys of pruned records, in the order of what is appended, and the sessions that end with one of
   * `lasts`: an action of theirs from this turn on begins the session anew. Resolves when that is durable.
   */
  async deleteRecords(keys: readonly string[], lasts: readonly PlacedAction[]): Promise<void> {
    // Not bounded: it is one batch at a time, and a queue that is full must not end a prune.
    this.commit.admit("outcome");
    const ended = lasts.flatMap((last) => this.#sessions.end(last));
    try {
      await this.commit.submitWrites([...keys, ...ended].map((key) => ({ type: "del", key })));
    } finally {
      this.#sessions.forgetEnded(lasts);
    }
  }

  /** Accepts records again after a failure. The caller has read the heads of the chains back. */
  resume(): void {
    this.#sessions.clear();
    this.commit.resume();
  }

  #appendGenesis(chain: EvidenceChain): void {
    const { key } = chain.signer;
    const sealed = sealEventRecord({ kind: "genesis", detail: genesisDetail(key.public) }, chain, this.#stamp);
    void this.commit.submit(chain, sealed, [listKey(chain, sealed, key)], { signers: [chain.signer], keep: true });
  }
}

/** Lists an event under its kind, with its subject: a session, else a principal, else a scope, else nothing. */
function listEvent(chain: EvidenceChain, sealed: Sealed, { kind, detail }: EventContent): BatchOperation {
  const { session, principal, scope } = detail;
  const value = [session, principal, scope].find((subject) => typeof subject === "string") ?? "";
  return { type: "put", key: eventKey(chain.tenant, kind, sealed.record.seq), value };
}

/** Lists a record among those that introduce a key. */
function listKey(chain: EvidenceChain, sealed: Sealed, key: SigningKey): BatchOperation {
  return { type: "put", key: keyRecordKey(chain.tenant, sealed.record.seq), value: key.id };
}

/** The place of a session's next record, and the session's summary before it. */
interface SessionPlace {
  /** The key of the session's summary. */
  readonly key: string;
  readonly session: RecordedSession;
  readonly before: SessionSummary | undefined;
}

interface Head {
  readonly summary: SessionSummary;
  readonly hash: string;
}

/**
 * The place of each session's next record. Holds the sessions used last, at most `capacity` of them over all
 * tenants, and reads others back from the store.
 *
 * INVARIANT: `capacity` exceeds the records that may wait for the disk, so a head that is not in memory is in the store.
 */
export class SessionHeads {
  readonly #store: EvidenceStore;
  readonly #capacity: number;
  readonly #heads = new Map<string, Head>();
  /** Sessions that the store still has, and whose deletion waits for the disk. */
  readonly #ended = new Set<string>();

  constructor(store: EvidenceStore, capacity: number) {
    this.#store = store;
    this.#capacity = capacity;
  }

  /** The place of the session's next record. Throws EVIDENCE_UNAVAILABLE where the store contradicts the chain. */
  next(chain: Pick<EvidenceChain, "tenant" | "head">, scope: SessionScope): SessionPlace {
    const { tenant } = chain;
    const key = sessionKey(tenant, scope.id);
    const head = this.#heads.get(key) ?? (this.#ended.has(key) ? undefined : this.#load(key, chain, scope.id));
    const session = {
      id: scope.id,
      index: head?.summary.records ?? 0,
      label: scope.label,
      prev_hash: head?.hash ?? noHash,
      transport: scope.transport,
    };
    return { key, session, before: head?.summary };
  }

  /** Moves the session's head to the record just sealed for `place`; returns the writes that commit with it. */
  advance(place: SessionPlace, sealed: Sealed<ActionRecord>): BatchWrite[] {
    const { tenant, session, seq } = sealed.record;
    const { key } = place;
    const summary = summarize(place.before, sealed.record);
    if (!this.#heads.delete(key)) forgetOldest(this.#heads, this.#capacity - 1);
    this.#heads.set(key, { summary, hash: sealed.hash });
    const operations: BatchWrite[] = [
      { type: "put", key, value: summary },
      { type: "put", key: sessionKey(tenant, session.id, session.index), value: String(seq) },
    ];
    if (session.index > 0) return operations;
    return [...operations, { type: "put", key: sessionOrderKey(tenant, seq), value: session.id }];
  }

  /**
   * Ends the session whose last record is `last`, and returns the keys that go with it; none where it goes on. Its next
   * record is its first from this turn on, whatever the store says until `forgetEnded`.
   */
  end({ tenant, seq, session: { id, index } }: PlacedAction): string[] {
    const key = sessionKey(tenant, id);
    if (this.#ended.has(key)) return [];
    const summary = this.#heads.get(key)?.summary ?? parseSessionSummary(this.#get(key) ?? "");
    if (summary?.last_seq !== seq) return [];
    this.#heads.delete(key);
    this.#ended.add(key);
    return [key, sessionKey(tenant, id, index), sessionOrderKey(tenant, summary.first_seq)];
  }

  /** Asks the store again for sessions that `end` ended. Their deletion is durable, or failed. */
  forgetEnded(lasts: readonly PlacedAction[]): void {
    for (const { tenant, session } of lasts) this.#ended.delete(sessionKey(tenant, session.id));
  }

  /** Drops all heads: after a failed write, memory may be ahead of the store. */
  clear(): void {
    this.#heads.clear();
    this.#ended.clear();
  }

  get size(): number {
    return this.#heads.size;
  }

  #get(key: string): string | undefined {
    try {
      return this.#store.getSync(key);
    } catch (error) {
      throw readFault(error);
    }
  }

  /** Finds the last record by the summary; index and hash come from that record itself. */
  #load(key: string, chain: Pick<EvidenceChain, "tenant" | "head">, session: string): Head | undefined {
    const { tenant } = chain;
    const text = this.#get(key);
    if (text === undefined) return undefined;
    const summary = parseSessionSummary(text);
    const last = summary === undefined ? undefined : this.#get(recordKey(tenant, summary.last_seq));
    const record = last === undefined ? undefined : readRecord(last);
    const isFound =
      summary && last !== undefined && record && !isChainFault(record) && isLast(record, summary, session);
    const hash = last === undefined ? noHash : sha256Hex(last);
    if (!isFound || !this.#isLinked(chain, record.seq, hash)) {
      throw new GatewayError(
        "EVIDENCE_UNAVAILABLE",
        `session \`${session}\` does not match its chain; verify the chain`,
      );
    }
    return { summary, hash };
  }

  /** True where the chain goes on from these very bytes: a disk may return others. What waits for the disk goes unasked. */
  #isLinked({ tenant, head }: Pick<EvidenceChain, "tenant" | "head">, seq: number, hash: string): boolean {
    if (head.seq === seq) return head.hash === hash;
    const text = this.#get(recordKey(tenant, seq + 1));
    const next = text === undefined ? undefined : readRecord(text);
    return next === undefined || (!isChainFault(next) && next.prev_hash === hash);
  }
}

function isLast(record: Parameters<typeof isAction>[0], summary: SessionSummary, session: string): boolean {
  return isAction(record) && record.session.id === session && record.session.index === summary.records - 1;
}

function summarize(before: SessionSummary | undefined, record: ActionRecord): SessionSummary {
  const { session, principal } = record;
  const decided = record.kind === "decision" ? record.evaluation?.decision : undefined;
  return {
    id: session.id,
    transport: session.transport,
    ...(session.label === undefined ? {} : { label: session.label }),
    principal: principal.id,
    started_at: before?.started_at ?? record.time,
    last_at: record.time,
    first_seq: before?.first_seq ?? record.seq,
    last_seq: record.seq,
    records: session.index + 1,
    allow: (before?.allow ?? 0) + (decided === "allow" ? 1 : 0),
    review: (before?.review ?? 0) + (decided === "review" ? 1 : 0),
    block: (before?.block ?? 0) + (decided === "block" ? 1 : 0),
  };
}
