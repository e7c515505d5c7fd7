import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { SigningKey } from "../../action/signing-key.ts";
import { genesisDetail, rotationDetail } from "../key/key-history.ts";
import { type Disclosure, sealDisclosure } from "../private/disclosure.ts";
import { eventKey, keyRecordKey, recordKey } from "../record/key-space.ts";
import type { EvidenceChain } from "./chain-table.ts";
import { GroupCommit, type GroupCommitOptions, type Leaf } from "./group-commit.ts";
import {
  type ActionContent,
  type EventContent,
  type RecordPlace,
  type Sealed,
  type Stamp,
  sealAction,
  sealEvent,
} from "./seal.ts";
import { SessionHeads } from "./session-head.ts";

/** A record whose place is taken; durable when `durable` resolves. */
interface Appended {
  readonly seq: number;
  readonly durable: Promise<void>;
}

/**
 * Gives records their place in chain and session and hands them to the group commit. Sealing is synchronous: the order
 * of the calls is the order of the chain.
 *
 * INVARIANT: `admit` and `append…` happen in one turn, so that nothing is sealed that the group commit does not take.
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

  /** Throws EVIDENCE_UNAVAILABLE where a record would not be taken. Outcomes pass the queue's bound. */
  admit(kind: "bounded" | "outcome"): void {
    if (this.#closed) throw new GatewayError("EVIDENCE_UNAVAILABLE", "the ledger is closed");
    this.#commit.admit(kind === "outcome");
  }

  /** Appends a step of an action. `operation` is what belongs to it: the open decision put or taken away. */
  appendAction(
    chain: EvidenceChain,
    body: ActionContent,
    disclosure: Disclosure | undefined,
    operation: (seq: number) => BatchOperation[],
  ): Appended {
    this.#begin(chain);
    const place = this.#sessions.next(chain.tenant, body.session);
    const sealed = sealAction(body, placeAfter(chain), place.session, this.#stamp);
    const operations = [...operation(sealed.record.seq), ...this.#sessions.advance(place, sealed)];
    if (disclosure !== undefined) {
      const at = { tenant: chain.tenant, chain: chain.id, seq: sealed.record.seq };
      operations.push(...sealDisclosure(chain.wrapping, at, disclosure, this.#stamp.random));
    }
    return this.#submit(chain, sealed, operations);
  }

  /** Appends an event. `operations` are what it tells of: they happen with it, or not at all. */
  appendEvent(chain: EvidenceChain, body: EventContent, operations: readonly BatchOperation[] = []): Appended {
    this.#begin(chain);
    const sealed = sealEvent(body, placeAfter(chain), this.#stamp);
    return this.#submit(chain, sealed, [...operations, listEvent(chain, sealed, body)]);
  }

  /** Hands the chain over to another key: a record that both sign, and a checkpoint over it that both sign. */
  appendRotation(chain: EvidenceChain, successor: SigningKey): Appended {
    this.#begin(chain);
    const place = placeAfter(chain);
    const detail = rotationDetail(place, chain.key, successor);
    const sealed = sealEvent({ kind: "key", detail }, place, this.#stamp);
    const signature = { signers: [chain.key, successor], keep: true };
    const appended = this.#submit(chain, sealed, [introduce(chain, sealed, successor)], signature);
    chain.key = successor;
    return appended;
  }

  /** After sessions were changed in the store. Call while nothing waits for the disk. */
  forgetSessions(): void {
    this.#sessions.clear();
  }

  /** After a failure: forgets what was sealed and takes records again. The caller has read the chains' heads back. */
  resume(): void {
    this.#sessions.clear();
    this.#commit.resume();
  }

  /** Takes nothing more; resolves when all that was taken is durable or rejected. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#commit.drain();
  }

  #begin(chain: EvidenceChain): void {
    if (chain.head.seq >= 0) return;
    const sealed = sealEvent(
      { kind: "genesis", detail: genesisDetail(chain.key.public) },
      placeAfter(chain),
      this.#stamp,
    );
    this.#submit(chain, sealed, [introduce(chain, sealed, chain.key)], { signers: [chain.key], keep: true });
  }

  #submit(
    chain: EvidenceChain,
    sealed: Sealed,
    operations: BatchOperation[],
    signature: Signature = { signers: [chain.key], keep: false },
  ): Appended {
    const { seq, time } = sealed.record;
    operations.push({ type: "put", key: recordKey(chain.tenant, seq), value: sealed.text });
    const durable = this.#commit.submit({ operations, leaf: { chain, seq, hash: sealed.hash, time, ...signature } });
    chain.head = { seq, hash: sealed.hash };
    return { seq, durable };
  }
}

type Signature = Pick<Leaf, "signers" | "keep">;

/** Lists an event under its kind, with what it is about: a session, else a principal, else all of a scope, else nothing in particular. */
function listEvent(chain: EvidenceChain, sealed: Sealed, { kind, detail }: EventContent): BatchOperation {
  const { session, principal, scope } = detail;
  const value = [session, principal, scope].find((about) => typeof about === "string") ?? "";
  return { type: "put", key: eventKey(chain.tenant, kind, sealed.record.seq), value };
}

/** Lists a record among those that introduce a key. */
function introduce(chain: EvidenceChain, sealed: Sealed, key: SigningKey): BatchOperation {
  return { type: "put", key: keyRecordKey(chain.tenant, sealed.record.seq), value: key.id };
}

function placeAfter(chain: EvidenceChain): RecordPlace {
  return { tenant: chain.tenant, chain: chain.id, seq: chain.head.seq + 1, prevHash: chain.head.hash };
}
