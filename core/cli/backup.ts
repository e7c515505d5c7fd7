import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "commander";
import type { BackupView } from "../evidence/backup/backups.ts";
import { asciiJson } from "../kernel/ascii-json.ts";
import { GatewayError } from "../kernel/error.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { backupVerifyCommand } from "./backup-verify.ts";
import { type Page, printList } from "./list.ts";
import { print, tellProgress } from "./print.ts";

interface Options extends AdminOptions {
  readonly json?: true;
}

const path = "/admin/v1/resilience/backups";
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
  const { name } = await askJson<BackupView>(options, "/admin/v1/resilience/backup", "POST");
  const complete = await waitFor(name, options);
  print(options.json ? asciiJson(complete) : name);
}

/** Throws BACKUP_FAILED where the gateway gave it up. */
async function waitFor(name: string, options: Options): Promise<BackupView> {
  for (let toldMs = Date.now(); ; await sleep(askAgainMs)) {
    const { items } = await askJson<Page<BackupView>>(options, `${path}?limit=5`);
    const backup = items.find((each) => each.name === name);
    if (backup?.state === "complete") return backup;
    if (backup === undefined || backup.state === "failed") {
      throw new GatewayError("BACKUP_FAILED", `\`${name}\`: the gateway's log says why`);
    }
    if (Date.now() - toldMs < tellEveryMs) continue;
    toldMs = Date.now();
    tellProgress(`${backup.state}, ${backup.bytes} bytes so far`);
  }
}

async function listBackups(options: Options): Promise<void> {
  await printList(options, path, { json: options.json, describe });
}

function describe({ name, state, made_at: at, bytes }: BackupView): string {
  return `${name}  ${state}  ${at}  ${bytes} bytes`;
}
