import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "commander";
import type { BackupView } from "../evidence/backup/backups.ts";
import { GatewayError } from "../kernel/error.ts";
import { type AdminOptions, adminOption, askAdmin } from "./admin-client.ts";
import { backupVerifyCommand } from "./backup-verify.ts";

interface Options extends AdminOptions {
  readonly json?: true;
}

interface BackupPage {
  readonly items: readonly BackupView[];
  readonly next: string | null;
}

const askAgainMs = 200;
const tellEveryMs = 2_000;

/** `gateway backup`. */
export function backupCommand(): Command {
  const backup = new Command("backup").description("backups of a running gateway: everything it keeps, but its keys");
  backup
    .command("create")
    .description("make a backup, and wait until it is complete and read back")
    .addOption(adminOption())
    .option("--json", "print JSON")
    .action(createBackup);
  backup
    .command("list")
    .description("print the backups there are, the latest first")
    .addOption(adminOption())
    .option("--json", "print JSON, one line each")
    .action(listBackups);
  return backup.addCommand(backupVerifyCommand());
}

async function createBackup(options: Options): Promise<void> {
  const begun = await askAdmin(options, "/admin/v1/resilience/backup", "POST");
  const { name } = JSON.parse(begun.toString("utf8")) as BackupView;
  const complete = await waitFor(name, options);
  process.stdout.write(options.json ? `${JSON.stringify(complete)}\n` : `${name}\n`);
}

/** Throws BACKUP_FAILED where the gateway gave it up. */
async function waitFor(name: string, options: Options): Promise<BackupView> {
  for (let toldMs = Date.now(); ; await sleep(askAgainMs)) {
    const backup = (await readPage(options, "?limit=5")).items.find((each) => each.name === name);
    if (backup?.state === "complete") return backup;
    if (backup === undefined || backup.state === "failed") {
      throw new GatewayError("BACKUP_FAILED", `\`${name}\`: the gateway's log says why`);
    }
    if (Date.now() - toldMs < tellEveryMs) continue;
    toldMs = Date.now();
    process.stderr.write(`gateway: ${backup.state}, ${backup.bytes} bytes so far\n`);
  }
}

async function listBackups(options: Options): Promise<void> {
  let query = "?limit=500";
  for (;;) {
    const { items, next } = await readPage(options, query);
    for (const backup of items) process.stdout.write(options.json ? `${JSON.stringify(backup)}\n` : describe(backup));
    if (next === null) return;
    query = `?limit=500&cursor=${encodeURIComponent(next)}`;
  }
}

async function readPage(options: Options, query: string): Promise<BackupPage> {
  return JSON.parse((await askAdmin(options, `/admin/v1/resilience/backups${query}`)).toString("utf8")) as BackupPage;
}

function describe({ name, state, made_at: at, bytes }: BackupView): string {
  return `${name}  ${state}  ${at}  ${bytes} bytes\n`;
}
