import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { GatewayError } from "../action/error.ts";
import { evidenceRules } from "../compose/evidence-rules.ts";
import { elapsedMs } from "../compose/identity.ts";
import { loadConfig } from "../config/load.ts";
import { ReplicaDatabase } from "../replica/database.ts";
import { migrateToDatabase, migrateToFolder } from "../replica/migration.ts";
import { openFolder } from "../store/open.ts";
import { judgeFolder, openEvidenceFolder } from "./evidence-folder.ts";
import { print, sayProgress } from "./print.ts";

interface Options {
  readonly config: string;
  readonly to: "postgres" | "leveldb";
  readonly json?: true;
}

const timeoutMs = 60_000;
const progressEvery = 20_000;

/** `gateway store migrate`: every byte of the store, with marks and keys, while no gateway runs on either side. */
export async function migrateStore({ config: path, to, json }: Options): Promise<void> {
  const { dataDir, store } = await loadConfig(resolve(path), process.env);
  if (store === null) {
    throw new GatewayError(
      "INVALID_REQUEST",
      `expected \`store.engine: postgres\` in \`${path}\`: it names the database of both ways`,
    );
  }
  if (to === "postgres") await requireSound(dataDir);
  const database = await ReplicaDatabase.open({ url: store.url, timeoutMs });
  try {
    const level = await openFolder(dataDir);
    try {
      let said = 0;
      const onProgress = (entries: number): void => {
        if (entries - said < progressEvery) return;
        said = entries;
        sayProgress(`${entries} entries so far`);
      };
      const options = { dataDir, level, database, secret: store.secret, random: randomBytes, elapsedMs, onProgress };
      const migrated = await (to === "postgres" ? migrateToDatabase(options) : migrateToFolder(options));
      if (json) return print(JSON.stringify({ to, ...migrated }));
      print(`migrated ${migrated.entries} entries, ${migrated.digest}, the same on both sides`);
    } finally {
      await level.close();
    }
  } finally {
    await database.close();
  }
  if (to === "leveldb") await requireSound(dataDir);
}

/** Throws where the evidence of the data folder is not what it was: nothing of it is taken over. */
async function requireSound(dataDir: string): Promise<void> {
  const trust = { keys: [], rules: evidenceRules, witnesses: [], nowMs: Date.now(), maxAgeMs: undefined };
  const folder = await openEvidenceFolder(dataDir);
  try {
    const { chains } = await judgeFolder(folder, trust);
    const broken = chains.find(({ first_bad: bad }) => bad !== null);
    if (broken === undefined) return;
    const text = `the chain of tenant \`${broken.tenant}\` is ${broken.verdict} (${broken.first_bad?.reason}); see \`gateway evidence verify --data ${dataDir}\``;
    throw new GatewayError("STATE_UNUSABLE", text);
  } finally {
    await folder.close();
  }
}
