import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { Random } from "../../action/id.ts";
import type { SigningKey } from "../../action/signing-key.ts";
import { isFault } from "../fault.ts";
import type { KeyStore } from "../key/key-folder.ts";
import type { ChainTable } from "./chain-table.ts";
import { durably, type EvidenceStore, installationKey, openKey, openRange, probeKey, recordKey } from "./key-space.ts";
import type { ActionRecord } from "./record.ts";
import { type Bound, unknownBody } from "./record-body.ts";
import { isAction, readRecord } from "./record-text.ts";
import type { Writer } from "./writer.ts";

interface RecoveryOptions {
  readonly store: EvidenceStore;
  readonly chains: ChainTable;
  readonly open: OpenDecisions;
  readonly writer: Writer;
  readonly writerId: string;
  readonly warn: (message: string, fields: object) => void;
}

const settledAtOnce = 256;

/** Brings the ledger's memory back in line with the disk, at a start and after a failed write. */
export class Recovery {
  readonly #options: RecoveryOptions;

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  /** Checks every chain against its mark, and settles what a former process left open. */
  async start(): Promise<void> {
    await this.#settle(await this.#load(), "process ended before the outcome was recorded");
  }

  /**
   * The same after a failed write, on a store opened anew: half a record in LevelDB's log makes it write behind that
   * what it can never read back. Rejects while the disk still fails.
   */
  async reopen(): Promise<void> {
    const { store, writer, warn } = this.#options;
    await store.close();
    await store.open();
    await store.put(probeKey, this.#options.writerId, durably);
    const abandoned = await this.#load();
    writer.resume();
    await this.#settle(abandoned, "evidence could not be written when the outcome was due");
    warn("evidence repaired", { unknown: abandoned.length });
  }

  /** Reads the chains back; returns the dispatched decisions nobody will bring the outcome of. */
  async #load(): Promise<readonly Abandoned[]> {
    const { store, chains, open, warn } = this.#options;
    await chains.load();
    for (const [tenant, reason] of chains.refusals) warn("evidence refused", { tenant, reason });
    return open.findAbandoned(store, chains.tenants);
  }

  async #settle(abandoned: readonly Abandoned[], reason: string): Promise<void> {
    for (let at = 0; at < abandoned.length; at += settledAtOnce) {
      await Promise.all(abandoned.slice(at, at + settledAtOnce).map((each) => this.#settleOne(each, reason)));
    }
  }

  /** A tenant whose decision cannot be settled is refused; the disk failing again ends the recovery. */
  async #settleOne(each: Abandoned, reason: string): Promise<void> {
    const { store, chains, writer, warn } = this.#options;
    try {
      const decision = await readAbandoned(store, each);
      const chain = await chains.open(each.tenant);
      const operation: BatchOperation = { type: "del", key: openKey(each.tenant, decision.action.id) };
      writer.admit("outcome");
      await writer.appendAction(chain, unknownBody(decision, reason), undefined, () => [operation]).durable;
    } catch (error) {
      if (writer.failed || !(error instanceof GatewayError)) throw error;
      chains.refuse(each.tenant, error.detail ?? error.message);
      warn("evidence refused", { tenant: each.tenant, reason: error.detail ?? error.message });
    }
  }
}

/** A dispatched decision in the store that nobody is going to bring the outcome of. */
interface Abandoned {
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
async function readAbandoned(store: EvidenceStore, { tenant, seq }: Abandoned): Promise<ActionRecord> {
  const text = Number.isSafeInteger(seq) ? await store.get(recordKey(tenant, seq)) : undefined;
  const record = text === undefined ? undefined : readRecord(text);
  if (record !== undefined && !isFault(record) && isAction(record) && record.effect === "dispatched") return record;
  throw new GatewayError("EVIDENCE_UNAVAILABLE", `chain of tenant \`${tenant}\` has no open decision at record ${seq}`);
}

/** This data folder towards its witnesses: a random name, and the key that signs the list of its chains. */
export interface Installation {
  readonly id: string;
  readonly key: SigningKey;
}

const idBytes = 16;
const idPattern = /^[A-Za-z0-9_-]{1,64}$/;

/** The installation of a store, made at its first use. Rejects where its key is not in the key store. */
export async function openInstallation(store: EvidenceStore, keys: KeyStore, random: Random): Promise<Installation> {
  const text = await store.get(installationKey);
  if (text === undefined) return createInstallation(store, keys, random);
  const { id, key_id: keyId } = JSON.parse(text) as { readonly id: string; readonly key_id: string };
  const key = await keys.find(keyId);
  if (key === undefined) throw new Error(`the installation's key \`${keyId}\` is not in the key folder`);
  return { id, key };
}

/** The installation's name where it has one yet: a folder that never had a witness has none. */
export async function readInstallationId(store: EvidenceStore): Promise<string | undefined> {
  const text = await store.get(installationKey);
  if (text === undefined) return undefined;
  try {
    const { id } = JSON.parse(text) as { readonly id?: unknown };
    return typeof id === "string" && idPattern.test(id) ? id : undefined;
  } catch {
    return undefined; // as good as none: the witnesses know it by its name
  }
}

async function createInstallation(store: EvidenceStore, keys: KeyStore, random: Random): Promise<Installation> {
  const key = await keys.create();
  const id = Buffer.from(random(idBytes)).toString("base64url");
  await store.put(installationKey, JSON.stringify({ id, key_id: key.id }), durably);
  return { id, key };
}
