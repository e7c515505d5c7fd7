import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Principal, principalId } from "../../core/action/principal.ts";
import { type BackupOptions, Backups, type BackupView } from "../../core/backup/backups.ts";
import { KeyFolder } from "../../core/evidence/key/key-folder.ts";
import { LedgerWorld } from "./ledger-world.ts";

export const admin: Principal = {
  id: principalId("acme", "sha256:adam"),
  tenant: "acme",
  role: "admin",
  keyId: "adam",
};

/** A ledger on disk, and its backups in a folder beside it. */
export class BackupWorld {
  /** The folder that holds `data` and `backups`, and whatever a test puts beside them. */
  readonly root: string;
  readonly ledger: LedgerWorld;
  readonly warnings: { readonly message: string; readonly fields: object }[] = [];

  private constructor(root: string) {
    this.root = root;
    this.ledger = LedgerWorld.at(join(root, "data"));
  }

  /** With the ledger open, and nothing in it. */
  static async create(): Promise<BackupWorld> {
    const world = new BackupWorld(await mkdtemp(join(tmpdir(), "backup-")));
    await world.ledger.open();
    return world;
  }

  get dataDir(): string {
    return this.ledger.dir;
  }

  get backupDir(): string {
    return join(this.root, "backups");
  }

  open(over: Partial<BackupOptions> = {}): Promise<Backups> {
    return Backups.open({
      store: this.ledger.store,
      ledger: this.ledger.ledger,
      keys: new KeyFolder(this.ledger.keysPath, randomBytes),
      clock: Date.now,
      random: randomBytes,
      gateway: "0.0.0",
      dataDir: this.dataDir,
      stateDir: join(this.dataDir, "state"),
      backupDir: this.backupDir,
      keep: 7,
      onWarning: (message, fields) => this.warnings.push({ message, fields }),
      ...over,
    });
  }

  /** Makes a backup of the ledger as it is, and says where it is. */
  async make(): Promise<string> {
    const backups = await this.open();
    const { name } = await backups.begin(admin);
    const { state } = await ended(backups, name);
    if (state !== "complete") throw new Error(`expected a complete backup, got ${JSON.stringify(this.warnings)}`);
    return join(this.backupDir, name);
  }

  async remove(): Promise<void> {
    await this.ledger.close();
    await chmod(this.backupDir, 0o700).catch(() => undefined);
    await rm(this.root, { recursive: true });
  }
}

/** How a backup ended. */
export async function ended(backups: Backups, name: string): Promise<BackupView> {
  for (;;) {
    const view = (await backups.list({ limit: 500 })).items.find((each) => each.name === name);
    if (view?.state === "complete" || view?.state === "failed") return view;
    await sleep(5);
  }
}
