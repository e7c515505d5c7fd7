import { randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { endRestored } from "../approval/restored.ts";
import { type BackupHeader, refuse } from "../evidence/backup/content.ts";
import { readBackup, type SoundBackup } from "../evidence/backup/read.ts";
import { KeyFolder } from "../evidence/key-folder.ts";
import { type StagedBackup, stageBackup } from "./backup-stage.ts";
import { judgeFolder } from "./folder-report.ts";
import { openOfflineLedger } from "./offline-ledger.ts";
import { currentUser, parseText } from "./requester.ts";
import { findDoubts } from "./restore-doubt.ts";
import { RestoreTarget } from "./restore-target.ts";
import { addText, openWitness } from "./trust-option.ts";

interface RestoreOptions {
  readonly data: string;
  readonly witness: readonly string[];
  readonly acceptRollback?: string;
  readonly replace?: true;
  readonly by?: string;
  readonly json?: true;
}

/** What was restored. */
interface Restored {
  readonly tenants: number;
  readonly approvalsEnded: number;
}

/** `gateway restore`. */
export function restoreCommand(): Command {
  return new Command("restore")
    .description("restore a backup into a data folder; whatever is wrong with it, the folder stays as it was")
    .argument("<file>", "a file that the gateway wrote")
    .requiredOption(
      "-d, --data <folder>",
      "data folder that holds the `keys` folder of the backup's gateway, and no state",
    )
    .option("--witness <place>", "where a witness keeps its notes: a folder or URL; repeatable", addText, [])
    .option(
      "--accept-rollback <reason>",
      "restore what is older than a witness has seen; kept in the record",
      parseText,
    )
    .option("--replace", "move the state that is there aside, where no gateway runs on it")
    .option("--by <name>", "who asked for it; kept in the record (default: the user this runs as)", parseText)
    .option("--json", "print JSON")
    .action(restore);
}

async function restore(file: string, options: RestoreOptions): Promise<void> {
  const [path, data] = [resolve(file), resolve(options.data)];
  const sound = await readBackup(path);
  await checkOwn(sound, data);
  const target = await RestoreTarget.open(data, options.replace === true);
  let done: Restored;
  let aside: string | undefined;
  try {
    const staged = await stageBackup(path, sound, target.stage);
    try {
      await checkAge(staged, target, options);
      done = await settle(staged, sound.header, { ...options, data, stage: target.stage });
    } finally {
      await staged.close();
    }
    aside = await target.commit();
  } catch (error) {
    await target.abandon();
    throw error;
  }
  tell(sound.header, done, aside, options);
}

/** Whoever holds the key that sealed it made it. */
async function checkOwn({ key }: SoundBackup, data: string): Promise<void> {
  const keys = join(data, "keys");
  if ((await new KeyFolder(keys, randomBytes).find(key.id)) !== undefined) return;
  throw refuse(
    `it is sealed by key \`${key.id}\`, which is not in \`${keys}\`; put the keys of its gateway there first`,
  );
}

/** Throws BACKUP_REFUSED where something speaks against it that nobody accepted, or nobody can. */
async function checkAge(staged: StagedBackup, target: RestoreTarget, options: RestoreOptions): Promise<void> {
  const { witness, acceptRollback } = options;
  const trust = { keys: [], witnesses: witness.map(openWitness), nowMs: Date.now(), maxAgeMs: undefined };
  const report = await judgeFolder(staged, trust);
  const doubts = await findDoubts(staged, report, await target.formerMarks());
  const grave = doubts.filter(({ isAge }) => !isAge);
  if (grave.length > 0) throw refuse(grave.map(({ text }) => text).join("; "));
  if (doubts.length === 0) return;
  const texts = doubts.map(({ text }) => text);
  if (acceptRollback === undefined)
    throw refuse(`${texts.join("; ")}; \`--accept-rollback <reason>\` restores it all the same`);
  for (const text of texts) process.stderr.write(`gateway: accepted: ${text}\n`);
}

/** Opens the evidence as a start does, ends what waits for review or use, and records the restore. */
async function settle(
  { store }: StagedBackup,
  { name, madeAt }: BackupHeader,
  { data, stage, by = currentUser(), acceptRollback: rollback }: SettleOptions,
): Promise<Restored> {
  const ledger = await openOfflineLedger(store, { dir: stage, keys: join(data, "keys"), tool: "gateway restore" });
  try {
    const chains = ledger.status();
    const refused = chains.find(({ state }) => state !== "ready");
    if (refused !== undefined) throw refuse(refused.reason ?? `chain of tenant \`${refused.tenant}\` is refused`);
    const tenants = chains.filter(({ seq }) => seq >= 0).map(({ tenant }) => tenant);
    const approvalsEnded = await endRestored({ store, journal: ledger.approvals, clock: Date.now }, tenants);
    const detail = { action: "restore", backup: name, made_at: madeAt, by, rollback: rollback ?? null };
    for (const tenant of tenants) await ledger.recordEvent(tenant, "admin", detail);
    return { tenants: tenants.length, approvalsEnded };
  } finally {
    await ledger.close();
  }
}

interface SettleOptions extends RestoreOptions {
  readonly stage: string;
}

function tell(
  { name, madeAt }: BackupHeader,
  done: Restored,
  aside: string | undefined,
  options: RestoreOptions,
): void {
  const { tenants, approvalsEnded: ended } = done;
  const told = { backup: name, made_at: madeAt, tenants, approvals_ended: ended, replaced: aside ?? null };
  if (options.json) process.stdout.write(`${JSON.stringify(told)}\n`);
  else process.stdout.write(`${name}: restored as of ${madeAt}, ${tenants} tenants, ${ended} approvals ended\n`);
  if (aside !== undefined) process.stderr.write(`gateway: what was there is in ${aside}\n`);
  if (options.acceptRollback === undefined) return;
  process.stderr.write(
    "gateway: a tenant of whom a witness has seen more is refused until that witness's notes are set aside\n",
  );
}
