import { GatewayError } from "../kernel/error.ts";
import { isFault } from "./fault.ts";
import { type EvidenceStore, openKey, openRange, recordKey } from "./key-space.ts";
import type { ActionRecord } from "./record.ts";
import type { Bound } from "./record-body.ts";
import { isAction, readRecord } from "./record-text.ts";

/** A dispatched decision in the store that nobody is going to bring the outcome of. */
export interface Abandoned {
  readonly tenant: string;
  readonly seq: number;
}

/**
 * The dispatched decisions whose outcome this process still owes: at most `limit` over all tenants.
 * The store keeps the same set (`openKey`), and is ahead of this one exactly by what was abandoned.
 */
export class OpenDecisions {
  readonly #limit: number;
  readonly #bounds = new Map<string, Bound>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Throws EVIDENCE_UNAVAILABLE when one more would be too many, TypeError when the action is open already. */
  checkRoom(tenant: string, actionId: string): void {
    if (this.#bounds.has(openKey(tenant, actionId)))
      throw new TypeError("evidence: the action's decision is already open");
    if (this.#bounds.size < this.#limit) return;
    throw new GatewayError("EVIDENCE_UNAVAILABLE", `more than ${this.#limit} actions wait for their outcome`);
  }

  /** Holds the decision open as soon as it is sealed; lets go, and rejects, where it did not become durable. */
  async owe(tenant: string, actionId: string, bound: Bound, durable: Promise<void>): Promise<void> {
    const key = openKey(tenant, actionId);
    this.#bounds.set(key, bound);
    try {
      await durable;
    } catch (error) {
      this.#bounds.delete(key);
      throw error;
    }
  }

  /** Ends an open decision. Throws TypeError when there is none: no outcome without, or twice for, a decision. */
  take(tenant: string, actionId: string): Bound {
    const key = openKey(tenant, actionId);
    const bound = this.#bounds.get(key);
    if (bound === undefined) throw new TypeError("evidence: expected an open decision of this action, got none");
    this.#bounds.delete(key);
    return bound;
  }

  /** What is open in the store and not here. Call while nothing is appended. */
  async findAbandoned(store: EvidenceStore, tenants: readonly string[]): Promise<Abandoned[]> {
    const found: Abandoned[] = [];
    for (const tenant of tenants) {
      for await (const [key, seq] of store.iterator(openRange(tenant))) {
        if (!this.#bounds.has(key)) found.push({ tenant, seq: Number(seq) });
      }
    }
    return found;
  }
}

/** The record of an abandoned decision. Throws EVIDENCE_UNAVAILABLE where the store holds something else in its place. */
export async function readAbandoned(store: EvidenceStore, { tenant, seq }: Abandoned): Promise<ActionRecord> {
  const text = Number.isSafeInteger(seq) ? await store.get(recordKey(tenant, seq)) : undefined;
  const record = text === undefined ? undefined : readRecord(text);
  if (record !== undefined && !isFault(record) && isAction(record) && record.effect === "dispatched") return record;
  throw new GatewayError("EVIDENCE_UNAVAILABLE", `chain of tenant \`${tenant}\` has no open decision at record ${seq}`);
}
