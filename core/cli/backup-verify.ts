import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { refuse } from "../evidence/backup/content.ts";
import { readBackup, type SoundBackup } from "../evidence/backup/read.ts";
import type { VerifyingKey } from "../kernel/signing-key.ts";
import { stageBackup } from "./backup-stage.ts";
import { type FolderReport, judgeFolder, printReport } from "./folder-report.ts";
import { addKey, addText, openWitness } from "./trust-option.ts";

interface VerifyOptions {
  readonly key: readonly VerifyingKey[];
  readonly witness: readonly string[];
  readonly json?: true;
}

/** `gateway backup verify`. */
export function backupVerifyCommand(): Command {
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
    const trust = { keys: [], witnesses: witness.map(openWitness), nowMs: Date.now(), maxAgeMs: undefined };
    return await judgeFolder(staged, trust).finally(() => staged.close());
  } finally {
    await rm(dir, { recursive: true });
  }
}

function tellOf({ header, key, lines, root }: SoundBackup): object {
  return { name: header.name, made_at: header.madeAt, lines, root, key_id: key.id, public_key: key.text };
}
