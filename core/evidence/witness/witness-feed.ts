import type { ChainStatus } from "../chain/chain-table.ts";
import { readKeyHistory } from "../key/key-history.ts";
import { checkpointKey, durably, publishedHeadsKey, tenantIndexSaltKey } from "../record/key-space.ts";
import { StateStore } from "../state/state-store.ts";
import { parseCheckpoint, type SignedCheckpoint } from "../tree/checkpoint.ts";
import { TileReader } from "../tree/tile-reader.ts";
import { type Installation, openInstallation } from "./installation.ts";
import { type PublishedHeads, readPublishedHeads } from "./published-heads.ts";
import {
  coversEntries,
  readTenantIndex,
  signTenantIndex,
  type TenantIndexEntry,
  tenantIndexLog,
} from "./tenant-index.ts";
import { compareWithNote, describeContradiction, type Witness, type WitnessFeedOptions } from "./witness.ts";

/**
 * Publishes the head of every chain to one witness, and trusts the witness where the two disagree: before a chain is published
 * for the first time, it is compared with the witness's note. A chain that is behind or forked is refused and no longer
 * published.
 */
export class WitnessFeed {
  readonly witness: Witness;
  readonly #options: WitnessFeedOptions;
  readonly #meta: TenantIndexFeed;
  readonly #states: StateStore;
  /** Size of the latest note that the witness has, by chain, once compared. */
  readonly #published = new Map<string, number>();

  constructor(witness: Witness, options: WitnessFeedOptions) {
    this.witness = witness;
    this.#options = options;
    this.#meta = new TenantIndexFeed(witness, options);
    this.#states = new StateStore(options);
  }

  /** Compares every chain, and the tenant index, with the witness's notes. Rejects where the witness does not answer. */
  async compare(): Promise<void> {
    for (const chain of this.#chains()) await this.#compareOnce(chain);
    await this.#meta.compareOnce();
  }

  /** Publishes to the witness whatever is new. Rejects at the first note it refuses; the next push continues from there. */
  async push(): Promise<void> {
    await this.compare();
    for (const chain of this.#chains()) await this.#publish(chain);
    await this.#meta.push();
  }

  #chains(): readonly ChainStatus[] {
    return this.#options.ledger.status().filter(({ state, seq }) => state !== "refused" && seq >= 0);
  }

  async #publish({ tenant, chain }: ChainStatus): Promise<void> {
    const { store } = this.#options;
    const published = this.#published.get(chain) ?? 0;
    if ((parseCheckpoint((await store.get(checkpointKey(tenant))) ?? "")?.size ?? 0) <= published) return;
    // Kept in the store first: a checkpoint that a witness has must be provable here.
    const note = await this.#states.publish(tenant);
    const checkpoint = parseCheckpoint(note ?? "");
    if (note === undefined || checkpoint === undefined) return;
    await this.witness.append(chain, note, checkpoint.time);
    this.#published.set(chain, checkpoint.size);
  }

  async #compareOnce(status: ChainStatus): Promise<void> {
    if (this.#published.has(status.chain)) return;
    const note = await this.witness.latest(status.chain);
    const size = note === undefined ? 0 : await this.#compare(status, note);
    if (size !== undefined) this.#published.set(status.chain, size);
  }

  /** The size of the witness's note; undefined where the chain had to be refused. */
  async #compare({ tenant, chain }: ChainStatus, note: string): Promise<number | undefined> {
    const { store, ledger } = this.#options;
    const keys = await readKeyHistory(store, tenant, chain);
    const latest = await this.#latest(tenant);
    if (typeof keys === "string" || latest === undefined)
      throw new Error(`tenant \`${tenant}\` has no good checkpoint`);
    const end = { tenant, chain, head: { seq: latest.size - 1, hash: latest.head } };
    const result = await compareWithNote(note, end, keys, new TileReader(store, tenant));
    if (result.verdict === "unreadable") throw new Error(`the witness holds no checkpoint in log \`${chain}\``);
    const reason = describeContradiction(result, this.witness.name, end);
    if (reason === undefined) return result.size;
    ledger.refuse(tenant, reason);
    return undefined;
  }

  async #latest(tenant: string): Promise<SignedCheckpoint | undefined> {
    return parseCheckpoint((await this.#options.store.get(checkpointKey(tenant))) ?? "");
  }
}

const saltBytes = 16;

/** Publishes the tenant index to one witness, all chains in one hash, so that none can be removed as a whole. */
class TenantIndexFeed {
  readonly #witness: Witness;
  readonly #options: WitnessFeedOptions;
  #compared = false;

  constructor(witness: Witness, options: WitnessFeedOptions) {
    this.#witness = witness;
    this.#options = options;
  }

  /** Compares the published heads with the witness's note and with the chains of the store, once. */
  async compareOnce(): Promise<void> {
    if (this.#compared) return;
    const installation = await this.#installation();
    const note = await this.#witness.latest(tenantIndexLog(installation.id));
    if (note !== undefined) await this.#compare(installation, note);
    this.#compared = true;
  }

  /** Publishes the heads of all chains, unless they are those that were published last. */
  async push(): Promise<void> {
    const { store, clock } = this.#options;
    const entries = await this.#entries();
    const { confirmed } = await this.#heads();
    if (JSON.stringify(entries) === JSON.stringify(confirmed)) return;
    const { id, key } = await this.#installation();
    await store.put(publishedHeadsKey(this.#witness.name), JSON.stringify({ confirmed, pending: entries }), durably);
    await this.#witness.append(tenantIndexLog(id), signTenantIndex(id, entries, key), new Date(clock()).toISOString());
    await store.put(
      publishedHeadsKey(this.#witness.name),
      JSON.stringify({ confirmed: entries, pending: null }),
      durably,
    );
  }

  async #compare({ id, key }: Installation, note: string): Promise<void> {
    const { ledger } = this.#options;
    const read = readTenantIndex(note, id, key.public);
    const { confirmed, pending } = await this.#heads();
    const entries = [pending, confirmed].find(
      (list) => list !== null && read !== undefined && coversEntries(read, list),
    );
    if (entries === undefined || entries === null) {
      return ledger.refuseNew(
        `witness \`${this.#witness.name}\` has seen a later or another list of chains than this data folder knows of`,
      );
    }
    const chains = new Map(ledger.status().map((status) => [status.tenant, status]));
    for (const entry of entries) {
      const status = chains.get(entry.tenant);
      if (status?.state === "refused" || (status?.chain === entry.chain && status.seq + 1 >= entry.size)) continue;
      ledger.refuse(
        entry.tenant,
        `chain of tenant \`${entry.tenant}\` is gone: witness \`${this.#witness.name}\` has seen ${entry.size} records of it`,
      );
    }
  }

  /** One entry a chain, in the order of the tenants. A chain that is refused keeps the entry it had. */
  async #entries(): Promise<TenantIndexEntry[]> {
    const { confirmed } = await this.#heads();
    const before = new Map(confirmed?.map((entry) => [entry.tenant, entry]));
    const entries: TenantIndexEntry[] = [];
    for (const status of this.#options.ledger.status()) {
      const entry = status.state === "refused" ? before.get(status.tenant) : await this.#entry(status);
      if (entry !== undefined) entries.push(entry);
    }
    return entries;
  }

  async #entry({ tenant, chain }: ChainStatus): Promise<TenantIndexEntry | undefined> {
    const checkpoint = parseCheckpoint((await this.#options.store.get(checkpointKey(tenant))) ?? "");
    if (checkpoint === undefined) return undefined;
    const { size, root } = checkpoint;
    return { tenant, chain, size, root: root.toString("hex"), salt: await this.#salt(tenant) };
  }

  async #salt(tenant: string): Promise<string> {
    const { store, random } = this.#options;
    const known = await store.get(tenantIndexSaltKey(tenant));
    if (known !== undefined) return known;
    const salt = Buffer.from(random(saltBytes)).toString("base64url");
    await store.put(tenantIndexSaltKey(tenant), salt, durably);
    return salt;
  }

  #heads(): Promise<PublishedHeads> {
    return readPublishedHeads(this.#options.store, this.#witness.name);
  }

  #installation(): Promise<Installation> {
    const { store, keys, random } = this.#options;
    return openInstallation(store, keys, random);
  }
}
