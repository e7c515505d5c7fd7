import type { BatchOperation } from "../../action/commit-hook.ts";
import type { SigningKey } from "../../action/signing-key.ts";
import { genesisDetail, rotationDetail } from "../key/key-history.ts";
import { type Disclosure, sealDisclosure } from "../private/private-field.ts";
import { eventKey, keyRecordKey } from "../record/key-space.ts";
import type { ActionRecord } from "../record/record.ts";
import { checkpointSigner } from "../tree/checkpoint.ts";
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
import { SessionHeads, type SessionPlace } from "./session-head.ts";

/** A step of an action that has its place and its bytes, and is not accepted yet. */
interface SealedAction extends Sealed<ActionRecord> {
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
    const place = this.#sessions.next(chain.tenant, content.session);
    return { ...sealActionRecord(content, chain, place.session, this.#stamp), place };
  }

  /** Appends the step that was just sealed, with its private fields. `operations` commit with it, or not at all. */
  appendAction(
    chain: EvidenceChain,
    sealed: SealedAction,
    operations: readonly BatchOperation[],
    disclosure?: Disclosure,
  ): Promise<void> {
    const writes = [...operations, ...this.#sessions.advance(sealed.place, sealed)];
    if (disclosure !== undefined) {
      const at = { tenant: chain.tenant, chain: chain.id, seq: sealed.record.seq };
      writes.push(...sealDisclosure(chain.wrapping, at, disclosure, this.#stamp.random));
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

  /** Drops the session heads after sessions were changed in the store. Call while nothing waits for the disk. */
  forgetSessions(): void {
    this.#sessions.clear();
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
