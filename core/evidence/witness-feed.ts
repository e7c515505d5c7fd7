import { readKeyHistory } from "./attested-head.ts";
import type { ChainStatus } from "./chain-table.ts";
import { parseCheckpoint, type SignedCheckpoint } from "./checkpoint.ts";
import { checkpointAtKey, checkpointKey, durably } from "./key-space.ts";
import { MetaFeed } from "./meta-feed.ts";
import { TileReader } from "./tile-reader.ts";
import type { Witness } from "./witness.ts";
import { checkTestimony, contradiction } from "./witness-check.ts";
import type { WitnessFeedOptions } from "./witness-source.ts";

/**
 * Tells one witness where every chain stands, and believes the witness where the two disagree: before a chain is told
 * for the first time, it is compared with what the witness has. A chain that is behind or forked is refused, and its
 * witness told nothing more about it.
 */
export class WitnessFeed {
  readonly witness: Witness;
  readonly #options: WitnessFeedOptions;
  readonly #meta: MetaFeed;
  /** Size of the latest note that the witness has, by chain, once compared. */
  readonly #told = new Map<string, number>();

  constructor(witness: Witness, options: WitnessFeedOptions) {
    this.witness = witness;
    this.#options = options;
    this.#meta = new MetaFeed(witness, options);
  }

  /** Compares every chain, and the list of chains, with what the witness has. Rejects where it cannot be asked. */
  async compare(): Promise<void> {
    for (const chain of this.#chains()) await this.#compareOnce(chain);
    await this.#meta.compareOnce();
  }

  /** Brings the witness up to date. Rejects at the first note it does not take; the next push goes on from there. */
  async push(): Promise<void> {
    await this.compare();
    for (const chain of this.#chains()) await this.#tell(chain);
    await this.#meta.push();
  }

  #chains(): readonly ChainStatus[] {
    return this.#options.ledger.status().filter(({ state, seq }) => state !== "refused" && seq >= 0);
  }

  async #tell({ tenant, chain }: ChainStatus): Promise<void> {
    const { store } = this.#options;
    const note = await store.get(checkpointKey(tenant));
    const checkpoint = note === undefined ? undefined : parseCheckpoint(note);
    if (note === undefined || checkpoint === undefined || checkpoint.size <= (this.#told.get(chain) ?? 0)) return;
    // It stays in the store first: what a witness knows must be provable here.
    await store.put(checkpointAtKey(tenant, checkpoint.size), note, durably);
    await this.witness.append(chain, note, checkpoint.time);
    this.#told.set(chain, checkpoint.size);
  }

  async #compareOnce(status: ChainStatus): Promise<void> {
    if (this.#told.has(status.chain)) return;
    const note = await this.witness.latest(status.chain);
    const size = note === undefined ? 0 : await this.#compare(status, note);
    if (size !== undefined) this.#told.set(status.chain, size);
  }

  /** The size of the witness's note; undefined where the chain had to be refused. */
  async #compare({ tenant, chain }: ChainStatus, note: string): Promise<number | undefined> {
    const { store, ledger } = this.#options;
    const keys = await readKeyHistory(store, tenant, chain);
    const latest = await this.#latest(tenant);
    if (typeof keys === "string" || latest === undefined)
      throw new Error(`tenant \`${tenant}\` has no good checkpoint`);
    const end = { tenant, chain, head: { seq: latest.size - 1, hash: latest.head } };
    const testimony = await checkTestimony(note, end, keys, new TileReader(store, tenant));
    if (testimony.verdict === "unreadable") throw new Error(`the witness holds no checkpoint in log \`${chain}\``);
    const reason = contradiction(testimony, this.witness.name, end);
    if (reason === undefined) return testimony.size;
    ledger.refuse(tenant, reason);
    return undefined;
  }

  async #latest(tenant: string): Promise<SignedCheckpoint | undefined> {
    return parseCheckpoint((await this.#options.store.get(checkpointKey(tenant))) ?? "");
  }
}
