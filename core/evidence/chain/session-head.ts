import { sha256Hex } from "../../action/canonical-json.ts";
import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { SessionScope } from "../../action/principal.ts";
import { forgetOldest } from "../../action/recent-map.ts";
import { type EvidenceStore, recordKey, sessionKey, sessionOrderKey } from "../record/key-space.ts";
import { isChainFault } from "../record/reason.ts";
import { type ActionRecord, noHash, type RecordedSession } from "../record/record.ts";
import { isAction, readRecord } from "../record/record-text.ts";
import { readFault } from "../record/store-view.ts";
import type { Sealed } from "./seal.ts";

/** One session in a list of sessions. */
export interface SessionSummary {
  readonly id: string;
  readonly transport: SessionScope["transport"];
  readonly label?: string;
  readonly principal: string;
  readonly started_at: string;
  readonly last_at: string;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly records: number;
  /** Decisions by their answer. */
  readonly allow: number;
  readonly review: number;
  readonly block: number;
}

/** The place of a session's next record, and the session's summary before it. */
export interface SessionPlace {
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

  constructor(store: EvidenceStore, capacity: number) {
    this.#store = store;
    this.#capacity = capacity;
  }

  /** The place of the session's next record. Throws EVIDENCE_UNAVAILABLE where the store contradicts the chain. */
  next(tenant: string, scope: SessionScope): SessionPlace {
    const key = sessionKey(tenant, scope.id);
    const head = this.#heads.get(key) ?? this.#load(key, tenant, scope.id);
    const session = {
      id: scope.id,
      index: head?.summary.records ?? 0,
      label: scope.label,
      prev_hash: head?.hash ?? noHash,
      transport: scope.transport,
    };
    return { session, before: head?.summary };
  }

  /** Moves the session's head to the record just sealed for `place`; returns the writes that commit with it. */
  advance(place: SessionPlace, sealed: Sealed<ActionRecord>): BatchOperation[] {
    const { tenant, session, seq } = sealed.record;
    const key = sessionKey(tenant, session.id);
    const summary = summarize(place.before, sealed.record);
    this.#heads.delete(key);
    this.#heads.set(key, { summary, hash: sealed.hash });
    forgetOldest(this.#heads, this.#capacity);
    const operations: BatchOperation[] = [
      { type: "put", key, value: JSON.stringify(summary) },
      { type: "put", key: sessionKey(tenant, session.id, session.index), value: String(seq) },
    ];
    if (session.index > 0) return operations;
    return [...operations, { type: "put", key: sessionOrderKey(tenant, seq), value: session.id }];
  }

  /** Drops all heads: after a failed write, memory may be ahead of the store. */
  clear(): void {
    this.#heads.clear();
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
  #load(key: string, tenant: string, session: string): Head | undefined {
    const text = this.#get(key);
    if (text === undefined) return undefined;
    const summary = parseSessionSummary(text);
    const last = summary === undefined ? undefined : this.#get(recordKey(tenant, summary.last_seq));
    const record = last === undefined ? undefined : readRecord(last);
    if (!summary || last === undefined || !record || isChainFault(record) || !isLast(record, summary, session)) {
      throw new GatewayError(
        "EVIDENCE_UNAVAILABLE",
        `session \`${session}\` does not match its chain; verify the chain`,
      );
    }
    return { summary, hash: sha256Hex(last) };
  }
}

/** Parses a summary; undefined for a text that this ledger has not written. */
export function parseSessionSummary(text: string): SessionSummary | undefined {
  try {
    const summary = JSON.parse(text) as SessionSummary;
    return [summary.records, summary.first_seq, summary.last_seq].every(isCount) ? summary : undefined;
  } catch {
    return undefined;
  }
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
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
