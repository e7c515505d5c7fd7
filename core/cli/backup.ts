import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "commander";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import type { VerifyingKey } from "../action/signing-key.ts";
import type { BackupView } from "../backup/backups.ts";
import { refuse } from "../backup/content.ts";
import { readBackup, type SoundBackup } from "../backup/read.ts";
import { evidenceRules } from "../compose/evidence-rules.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { type FolderReport, judgeFolder, printReport } from "./evidence-folder.ts";
import { addKey, addText, openWitness } from "./extension-verify.ts";
import { type Page, printList } from "./list.ts";
import { print, tellProgress } from "./print.ts";
import { stageBackup } from "./restore.ts";

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

interface VerifyOptions {
  readonly key: readonly VerifyingKey[];
  readonly witness: readonly string[];
  readonly json?: true;
}

/** `gateway backup verify`. */
function backupVerifyCommand(): Command {
  return new Command("verify")
    .description(
      "check a backup's seal, then every chain in it; exit 1 where the file is not sound, else as `gateway evidence verify`",
    )
    .argument("<file>", "a file that the gateway wrote")
    .option("--key <base64>", "public key of the data folder the backup is of; repeatable", addKey, [])
    .option("--witness <place>", "where a witness keeps its notes: a folder or URL; repeatable", addText, [])
    .option("--json", "print JSON")
    .action(verifyBackup);
}

async function verifyBackup(file: string, { key: keys, witness, json }: VerifyOptions): Promise<void> {
  const path = resolve(file);
  const sound = await readBackup(path);
  if (keys.length > 0 && !keys.some(({ id }) => id === sound.key.id)) {
    throw refuse(`it is sealed by key \`${sound.key.id}\`, which is not one that was given`);
  }
  const found = await judgeBackup(path, sound, witness);
  process.exitCode = found.exit;
  if (json) return void process.stdout.write(`${JSON.stringify({ ...tellOf(sound), ...found })}\n`);
  const { name, madeAt } = sound.header;
  process.stdout.write(`${name}: of ${madeAt}, ${sound.lines} lines, sealed by key ${sound.key.text}\n`);
  printReport(found);
}

/** Judges the chains of a backup in a folder that is gone afterwards. */
async function judgeBackup(path: string, sound: SoundBackup, witness: readonly string[]): Promise<FolderReport> {
  const dir = await mkdtemp(join(tmpdir(), "gateway-backup-"));
  try {
    const staged = await stageBackup(path, sound, dir);
    const trust = {
      keys: [],
      rules: evidenceRules,
      witnesses: witness.map(openWitness),
      nowMs: Date.now(),
      maxAgeMs: undefined,
    };
    return await judgeFolder(staged, trust).finally(() => staged.close());
  } finally {
    await rm(dir, { recursive: true });
  }
}

function tellOf({ header, key, lines, root }: SoundBackup): object {
  return { name: header.name, made_at: header.madeAt, lines, root, key_id: key.id, public_key: key.text };
}
