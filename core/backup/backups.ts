import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import type { Principal } from "../action/principal.ts";
import type { ChainStatus } from "../evidence/chain/chain-table.ts";
import { emptyHead } from "../evidence/chain/chain-walk.ts";
import type { Mark } from "../evidence/chain/high-water.ts";
import type { Page, PageRequest } from "../evidence/chain/session-record.ts";
import type { KeyStore } from "../evidence/key/key-folder.ts";
import type { Ledger } from "../evidence/ledger.ts";
import { checkpointKey, type EvidenceStore } from "../evidence/record/key-space.ts";
import { StoreView } from "../evidence/record/store-view.ts";
import { parseCheckpoint } from "../evidence/tree/checkpoint.ts";
import { type Installation, openInstallation } from "../evidence/witness/installation.ts";
import { corruption } from "../store/damage.ts";
import { findDamageInThread } from "../store/damage-thread.ts";
import { HeldSnapshot } from "../store/held-snapshot.ts";
import { stateFault } from "../store/open.ts";
import { BackupFolder, backupName } from "./folder.ts";
import { readBackup } from "./read.ts";
import { type Written, writeBackup } from "./write.ts";

export interface BackupOptions {
  readonly store: EvidenceStore;
  readonly ledger: Pick<Ledger, "status" | "recordEvent">;
  readonly keys: KeyStore;
  readonly clock: Clock;
  readonly random: Random;
  /** The version that a backup names as its maker. */
  readonly gateway: string;
  readonly dataDir: string;
  /** The folder of the store's files, which are checked for damage before they are read; null for a store in memory. */
  readonly stateDir: string | null;
  readonly backupDir: string;
  /** Complete backups that stay. */
  readonly keep: number;
  readonly onWarning: (message: string, fields: object) => void;
}

/** A backup as the admin API shows it. A failed one is shown until the next, and is nowhere on the disk. */
export interface BackupView {
  readonly name: string;
  readonly state: "writing" | "verifying" | "complete" | "failed";
  /** RFC 3339. */
  readonly made_at: string;
  /** Written so far. */
  readonly bytes: number;
}

/** Backups of everything that the gateway stores but its keys, one at a time, while it serves. */
export class Backups {
  readonly #options: BackupOptions;
  readonly #folder: BackupFolder;
  readonly #stop = new AbortController();
  /** The one that is being made, or the last one where it failed. */
  #latest: BackupView | null = null;
  #running: Promise<void> | null = null;

  private constructor(options: BackupOptions, folder: BackupFolder) {
    this.#options = options;
    this.#folder = folder;
  }

  /** Makes the folder of the backups. Throws STATE_UNUSABLE where it may not be used. */
  static async open(options: BackupOptions): Promise<Backups> {
    const folder = new BackupFolder(options.backupDir, options.dataDir);
    await folder.open();
    return new Backups(options, folder);
  }

  /**
   * Begins a backup and returns it. The request is recorded before anything is read. Throws BACKUP_BUSY where one is
   * being made, STATE_UNUSABLE where the folder may not be used, and EVIDENCE_UNAVAILABLE where a chain is not sound.
   *
   * `publish` sends witnesses the heads and the list of chains as they are then: the backup holds what they were sent, so
   * one who asks them does not find in it less than they have seen.
   */
  async begin(by: Principal, publish?: () => Promise<void>): Promise<BackupView> {
    if (this.#running !== null) throw new GatewayError("BACKUP_BUSY", "ask again when it is complete");
    const { clock, random } = this.#options;
    const madeAt = new Date(clock()).toISOString();
    const view: BackupView = { name: backupName(madeAt, random(4)), state: "writing", made_at: madeAt, bytes: 0 };
    const held = this.#hold(view.name, by, publish);
    // In this turn: no second backup begins while the request for this one is recorded.
    this.#running = held
      .then((moment) => this.#make(view, moment))
      .catch(() => undefined)
      .finally(() => {
        this.#running = null;
      });
    await held;
    return view;
  }

  /** The one that is being made or failed, and the complete ones, the latest first. Throws INVALID_PARAMS for a bad cursor. */
  async list({ limit, cursor }: PageRequest): Promise<Page<BackupView>> {
    const latest = this.#latest;
    const complete = await this.#folder.names();
    const names = latest === null || complete.includes(latest.name) ? complete : [latest.name, ...complete];
    const from = cursor === undefined ? 0 : names.indexOf(cursor);
    if (from === -1) throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of an earlier page");
    const shown = await Promise.all(names.slice(from, from + limit).map((name) => this.#show(name, latest)));
    return { items: shown.filter((each) => each !== undefined), next: names[from + limit] ?? null };
  }

  /** Ends what is being made. */
  async close(): Promise<void> {
    this.#stop.abort(new GatewayError("STOPPING"));
    await this.#running;
  }

  async #show(name: string, latest: BackupView | null): Promise<BackupView | undefined> {
    if (name === latest?.name) return latest;
    const file = await this.#folder.file(name);
    return file && { name, state: "complete", made_at: file.madeAt, bytes: file.bytes };
  }

  async #hold(backup: string, { tenant, id: principal }: Principal, publish?: () => Promise<void>): Promise<Moment> {
    const { store, ledger } = this.#options;
    await this.#folder.names(); // throws where the folder may not be used
    await ledger.recordEvent(tenant, "admin", { action: "backup.create", backup, principal });
    await publish?.(); // after that record, which is then seen too
    return holdMoment(store, () => ledger.status());
  }

  async #make(view: BackupView, moment: Moment): Promise<void> {
    const { name } = view;
    this.#latest = view;
    await using _held = moment.held;
    try {
      await this.#checkState();
      const written = await this.#write(view, moment);
      this.#latest = { ...view, state: "verifying", bytes: written.bytes };
      await this.#verify(name, written);
      await this.#folder.publish(name);
      await this.#folder
        .prune(this.#options.keep)
        .catch((error: unknown) => this.#warn("backup_pruning_failed", name, error));
      this.#latest = null;
    } catch (cause) {
      this.#warn("backup_failed", name, cause);
      await this.#folder
        .discard(name)
        .catch((error: unknown) => this.#warn("partial_backup_cleanup_failed", name, error));
      this.#latest = { ...view, state: "failed" };
    }
  }

  /** Throws STATE_UNUSABLE for damage: the database would read what is there, and the backup would be sealed over it. */
  async #checkState(): Promise<void> {
    const { stateDir } = this.#options;
    if (stateDir === null) return;
    const damage = await findDamageInThread(stateDir, this.#stop.signal);
    if (damage !== undefined) throw stateFault(stateDir, corruption(damage));
  }

  async #write(view: BackupView, moment: Moment): Promise<Written> {
    const { store } = this.#options;
    const { snapshot } = moment.held;
    const installation = await this.#installation();
    const marks = await marksAt(store, moment);
    const header = {
      name: view.name,
      madeAt: view.made_at,
      gateway: this.#options.gateway,
      installation: installation.id,
    };
    const onProgress = (bytes: number): void => {
      this.#latest = { ...view, bytes };
    };
    await using file = await this.#folder.create(view.name);
    return await writeBackup(
      file,
      { store, snapshot, header, marks, installation },
      { onProgress, signal: this.#stop.signal },
    );
  }

  #installation(): Promise<Installation> {
    const { store, keys, random } = this.#options;
    return openInstallation(store, keys, random);
  }

  /** Checks that the file on the disk holds what was read from the store. */
  async #verify(name: string, { lines, root }: Written): Promise<void> {
    const read = await readBackup(this.#folder.partialPath(name), { signal: this.#stop.signal });
    if (read.lines !== lines || read.root !== root) throw new Error("what is on the disk is not what was written");
  }

  #warn(message: string, backup: string, cause: unknown): void {
    this.#options.onWarning(message, { backup, cause: cause instanceof Error ? cause.message : String(cause) });
  }
}

/** Backups where they are `enabled`; else null. */
export async function openBackups({
  enabled,
  ...options
}: BackupOptions & { readonly enabled: boolean }): Promise<Backups | null> {
  return enabled ? Backups.open(options) : null;
}

/** The store at one moment, and where every chain stood then. */
interface Moment {
  readonly held: HeldSnapshot;
  readonly chains: readonly ChainStatus[];
}

/**
 * Holds the moment. Both are read in one turn of the event loop: no chain begins in between.
 * Throws EVIDENCE_UNAVAILABLE while records cannot be written, or a chain is not sound: nobody could restore that.
 */
function holdMoment(store: EvidenceStore, status: () => readonly ChainStatus[]): Moment {
  const chains = status();
  if (chains.some(({ state }) => state !== "ready")) {
    throw new GatewayError(
      "EVIDENCE_UNAVAILABLE",
      "a chain is not sound: `gateway evidence verify` says which, and why",
    );
  }
  return { held: new HeldSnapshot(store), chains };
}

/**
 * The high-water mark of every chain as of the moment: its checkpoint is in one batch with its last record. A chain
 * without one was named, and held nothing yet.
 */
async function marksAt(store: EvidenceStore, { held, chains }: Moment): Promise<readonly Mark[]> {
  const view = new StoreView(store, held.snapshot);
  const marks: Mark[] = [];
  for (const { tenant, chain } of chains) {
    const note = await view.get(checkpointKey(tenant));
    const checkpoint = note === undefined ? undefined : parseCheckpoint(note);
    if (note !== undefined && checkpoint?.chain !== chain) throw new Error("a chain's checkpoint is not its own");
    const head = checkpoint === undefined ? emptyHead : { seq: checkpoint.size - 1, hash: checkpoint.head };
    marks.push({ tenant, chain, seq: head.seq, head: head.hash });
  }
  return marks;
}
