import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { GatewayError } from "../action/error.ts";
import { asciiJson } from "../action/json.ts";
import type { VerifyingKey } from "../action/signing-key.ts";
import type { BackupView } from "../backup/backups.ts";
import { refuse } from "../backup/content.ts";
import { backupOperations } from "../backup/operation.ts";
import { readBackup, type SoundBackup } from "../backup/read.ts";
import { type AdminOptions, callAdmin, type ListPage } from "./admin-client.ts";
import { type FolderReport, printReport } from "./evidence-folder.ts";
import { print, sayProgress } from "./print.ts";
import { judgeStaged, stageBackup } from "./restore.ts";

interface Options extends AdminOptions {
  readonly json?: true;
}

const pollMs = 200;
const progressMs = 2_000;

/** `gateway backup create`. */
export async function createBackup(options: Options): Promise<void> {
  const { name } = await callAdmin<BackupView>(options, backupOperations.createBackup);
  const complete = await waitFor(name, options);
  print(options.json ? asciiJson(complete) : name);
}

/** Resolves once the backup is complete. Throws BACKUP_FAILED where the gateway abandoned it. */
async function waitFor(name: string, options: Options): Promise<BackupView> {
  for (let saidMs = Date.now(); ; await sleep(pollMs)) {
    const { items } = await callAdmin<ListPage<BackupView>>(options, backupOperations.listBackups, { limit: 5 });
    const backup = items.find((each) => each.name === name);
    if (backup?.state === "complete") return backup;
    if (backup === undefined || backup.state === "failed") {
      throw new GatewayError("BACKUP_FAILED", `\`${name}\`: see the log of the gateway`);
    }
    if (Date.now() - saidMs < progressMs) continue;
    saidMs = Date.now();
    sayProgress(`${backup.state}, ${backup.bytes} bytes so far`);
  }
}

interface VerifyOptions {
  readonly key: readonly VerifyingKey[];
  readonly witness: readonly string[];
  readonly json?: true;
}

/** `gateway backup verify`. The exit code is the verdict on the chains. */
export async function verifyBackup(file: string, { key: keys, witness, json }: VerifyOptions): Promise<void> {
  const path = resolve(file);
  const sound = await readBackup(path);
  if (keys.length > 0 && !keys.some(({ id }) => id === sound.key.id)) {
    throw refuse(`it is sealed by key \`${sound.key.id}\`, which is not a given one`);
  }
  const found = await judgeBackup(path, sound, witness);
  process.exitCode = found.exit;
  if (json) return print(JSON.stringify({ ...sealOf(sound), ...found }));
  const { name, madeAt } = sound.header;
  print(`${name}: of ${madeAt}, ${sound.lines} lines, sealed by key ${sound.key.text}`);
  printReport(found);
}

/** Verifies the chains of a backup in a temporary folder. */
async function judgeBackup(path: string, sound: SoundBackup, witness: readonly string[]): Promise<FolderReport> {
  const dir = await mkdtemp(join(tmpdir(), "gateway-backup-"));
  try {
    const staged = await stageBackup(path, sound, dir);
    return await judgeStaged(staged, witness).finally(() => staged.close());
  } finally {
    await rm(dir, { recursive: true });
  }
}

function sealOf({ header, key, lines, root }: SoundBackup): object {
  return { name: header.name, made_at: header.madeAt, lines, root, key_id: key.id, public_key: key.text };
}
