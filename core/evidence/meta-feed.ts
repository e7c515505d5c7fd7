import type { ChainStatus } from "./chain-table.ts";
import { parseCheckpoint } from "./checkpoint.ts";
import { type Installation, openInstallation } from "./installation.ts";
import { checkpointKey, durably, metaKey, metaSaltKey } from "./key-space.ts";
import { isOver, type MetaEntry, metaLog, readMetaNote, signMetaNote } from "./meta-log.ts";
import { readTold, type ToldList } from "./told-list.ts";
import type { Witness } from "./witness.ts";
import type { WitnessFeedOptions } from "./witness-source.ts";

const saltBytes = 16;

/** Tells one witness which chains there are, all in one hash, so that none can be removed as a whole. */
export class MetaFeed {
  readonly #witness: Witness;
  readonly #options: WitnessFeedOptions;
  #compared = false;

  constructor(witness: Witness, options: WitnessFeedOptions) {
    this.#witness = witness;
    this.#options = options;
  }

  /** Compares the list that was told with what the witness has and with the chains there are, once. */
  async compareOnce(): Promise<void> {
    if (this.#compared) return;
    const installation = await this.#installation();
    const note = await this.#witness.latest(metaLog(installation.id));
    if (note !== undefined) await this.#compare(installation, note);
    this.#compared = true;
  }

  /** Tells where all chains stand, unless that is what the witness was told last. */
  async push(): Promise<void> {
    const { store, clock } = this.#options;
    const entries = await this.#entries();
    const { confirmed } = await this.#told();
    if (JSON.stringify(entries) === JSON.stringify(confirmed)) return;
    const { id, key } = await this.#installation();
    await store.put(metaKey(this.#witness.name), JSON.stringify({ confirmed, pending: entries }), durably);
    await this.#witness.append(metaLog(id), signMetaNote(id, entries, key), new Date(clock()).toISOString());
    await store.put(metaKey(this.#witness.name), JSON.stringify({ confirmed: entries, pending: null }), durably);
  }

  async #compare({ id, key }: Installation, note: string): Promise<void> {
    const { ledger } = this.#options;
    const read = readMetaNote(note, id, key.public);
    const { confirmed, pending } = await this.#told();
    const entries = [pending, confirmed].find((list) => list !== null && read !== undefined && isOver(read, list));
    if (entries === undefined || entries === null) {
      return ledger.refuseNew(`witness \`${this.#witness.name}\` has seen other chains than this data folder knows of`);
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
  async #entries(): Promise<MetaEntry[]> {
    const { confirmed } = await this.#told();
    const before = new Map(confirmed?.map((entry) => [entry.tenant, entry]));
    const entries: MetaEntry[] = [];
    for (const status of this.#options.ledger.status()) {
      const entry = status.state === "refused" ? before.get(status.tenant) : await this.#entry(status);
      if (entry !== undefined) entries.push(entry);
    }
    return entries;
  }

  async #entry({ tenant, chain }: ChainStatus): Promise<MetaEntry | undefined> {
    const checkpoint = parseCheckpoint((await this.#options.store.get(checkpointKey(tenant))) ?? "");
    if (checkpoint === undefined) return undefined;
    const { size, root } = checkpoint;
    return { tenant, chain, size, root: root.toString("hex"), salt: await this.#salt(tenant) };
  }

  async #salt(tenant: string): Promise<string> {
    const { store, random } = this.#options;
    const known = await store.get(metaSaltKey(tenant));
    if (known !== undefined) return known;
    const salt = Buffer.from(random(saltBytes)).toString("base64url");
    await store.put(metaSaltKey(tenant), salt, durably);
    return salt;
  }

  #told(): Promise<ToldList> {
    return readTold(this.#options.store, this.#witness.name);
  }

  #installation(): Promise<Installation> {
    const { store, keys, random } = this.#options;
    return openInstallation(store, keys, random);
  }
}
