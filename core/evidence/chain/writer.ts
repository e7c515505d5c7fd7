import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { SigningKey } from "../../action/signing-key.ts";
import { genesisDetail, rotationDetail } from "../key/key-history.ts";
import { type Disclosure, sealDisclosure } from "../private/private-field.ts";
import { eventKey, keyRecordKey, recordKey } from "../record/key-space.ts";
import type { EvidenceChain } from "./chain-table.ts";
import { GroupCommit, type GroupCommitOptions, type Leaf } from "./group-commit.ts";
import {
  type ActionContent,
  type EventContent,
  type Sealed,
  type Stamp,
  sealActionRecord,
  sealEventRecord,
} from "./seal.ts";
import { SessionHeads } from "./session-head.ts";

/** A record with its sequence number; durable when `durable` resolves. */
interface Appended {
  readonly seq: number;
  readonly durable: Promise<void>;
}

/**
 * Gives records their place in chain and session and hands them to the group commit. Sealing is synchronous: the order
 * of the calls is the order of the chain.
 *
 * INVARIANT: `admit` and `append…` happen in one turn, so that nothing is sealed that the group commit does not accept.
 */
export class Writer {
  readonly #commit: GroupCommit;
  readonly #sessions: SessionHeads;
  #stamp: Stamp;
  #closed = false;

  constructor(options: GroupCommitOptions, stamp: Stamp) {
    this.#commit = new GroupCommit(options);
    // All that can wait for the disk: decisions and events up to the limit, and outcomes of as many open decisions.
    this.#sessions = new SessionHeads(options.store, 2 * options.limit + 1);
    this.#stamp = stamp;
  }

  get failed(): boolean {
    return this.#commit.failed;
  }

  updateConfigDigest(configDigest: string): void {
    this.#stamp = { ...this.#stamp, configDigest };
  }

  /** Throws EVIDENCE_UNAVAILABLE where a record would not be accepted. Outcomes pass the bound of the queue. */
  admit(kind: "bounded" | "outcome"): void {
    if (this.#closed) throw new GatewayError("EVIDENCE_UNAVAILABLE", "the ledger is closed");
    this.#commit.admit(kind === "outcome");
  }

  /** Appends a step of an action. `operationsAt` returns the writes that commit with the record of that number. */
  appendAction(
    chain: EvidenceChain,
    content: ActionContent,
    disclosure: Disclosure | undefined,
    operationsAt: (seq: number) => readonly BatchOperation[],
  ): Appended {
    if (chain.head.seq < 0) this.#appendGenesis(chain);
    const place = this.#sessions.next(chain.tenant, content.session);
    const sealed = sealActionRecord(content, chain, place.session, this.#stamp);
    const { seq } = sealed.record;
    const operations = [...operationsAt(seq), ...this.#sessions.advance(place, sealed)];
    if (disclosure !== undefined) {
      const at = { tenant: chain.tenant, chain: chain.id, seq };
      operations.push(...sealDisclosure(chain.wrapping, at, disclosure, this.#stamp.random));
    }
    return this.#submit(chain, sealed, operations);
  }

  /** Appends an event. `operations` commit with it, or not at all. */
  appendEvent(chain: EvidenceChain, content: EventContent, operations: readonly BatchOperation[] = []): Appended {
    if (chain.head.seq < 0) this.#appendGenesis(chain);
    const sealed = sealEventRecord(content, chain, this.#stamp);
    return this.#submit(chain, sealed, [...operations, listEvent(chain, sealed, content)]);
  }

  /** Appends the rotation to another key: a record, and a checkpoint over it, that both keys sign. */
  appendRotation(chain: EvidenceChain, successor: SigningKey): Appended {
    if (chain.head.seq < 0) this.#appendGenesis(chain);
    const place = { chain: chain.id, seq: chain.head.seq + 1, prevHash: chain.head.hash };
    const detail = rotationDetail(place, chain.key, successor);
    const sealed = sealEventRecord({ kind: "key", detail }, chain, this.#stamp);
    const signature = { signers: [chain.key, successor], keep: true };
    const appended = this.#submit(chain, sealed, [listKey(chain, sealed, successor)], signature);
    chain.key = successor;
    return appended;
  }

  /** Drops the session heads after sessions were changed in the store. Call while nothing waits for the disk. */
  forgetSessions(): void {
    this.#sessions.clear();
  }

  /** Accepts records again after a failure. The caller has read the heads of the chains back. */
  resume(): void {
    this.#sessions.clear();
    this.#commit.resume();
  }

  /** Accepts nothing more; resolves when every accepted record is durable or rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#commit.drain();
  }

  #appendGenesis(chain: EvidenceChain): void {
    const sealed = sealEventRecord({ kind: "genesis", detail: genesisDetail(chain.key.public) }, chain, this.#stamp);
    this.#submit(chain, sealed, [listKey(chain, sealed, chain.key)], { signers: [chain.key], keep: true });
  }

  #submit(
    chain: EvidenceChain,
    sealed: Sealed,
    operations: BatchOperation[],
    signature: Pick<Leaf, "signers" | "keep"> = { signers: [chain.key], keep: false },
  ): Appended {
    const { seq, time } = sealed.record;
    operations.push({ type: "put", key: recordKey(chain.tenant, seq), value: sealed.text });
    const durable = this.#commit.submit({ operations, leaf: { chain, seq, hash: sealed.hash, time, ...signature } });
    chain.head = { seq, hash: sealed.hash };
    return { seq, durable };
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
