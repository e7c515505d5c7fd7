import { join } from "node:path";
import { contentDigest } from "../../action/canonical-json.ts";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import { type ClientFile, readBytes, readClientFile, replaceClientFile } from "./client-file.ts";

/** The files beside `gateway.yaml` by which an adoption is undone. */
export const adoptionFiles = { record: "adoption.json", backup: "client-backup" } as const;

/** The facts that an undo is checked against. */
export interface AdoptionRecord {
  /** The client's configuration, absolute. */
  readonly file: string;
  /** Digests of its bytes before and after. */
  readonly before: string;
  readonly after: string;
  /** Permission bits. */
  readonly mode: number;
}

/** The files that a later `undo` reads, by their names. */
export function adoptionTexts(
  { path, bytes, mode }: ClientFile,
  after: Uint8Array,
): Readonly<Record<string, string | Uint8Array>> {
  const record: AdoptionRecord = { file: path, before: contentDigest(bytes), after: contentDigest(after), mode };
  return { [adoptionFiles.record]: `${JSON.stringify(record, null, 2)}\n`, [adoptionFiles.backup]: bytes };
}

/** `restored`: the bytes are as before. `unchanged`: they were already. */
export type UndoResult = "restored" | "unchanged";

/**
 * Restores a client's configuration from the backup in `folder`, byte for byte. Throws CONFIG_INVALID, and changes nothing, where
 * the folder adopted another file, where the backup is not what was read, or where the file was changed since.
 */
export async function undoAdoption(path: string, folder: string): Promise<UndoResult> {
  const current = await readClientFile(path);
  const record = await readRecord(folder, current.path);
  const backupPath = join(folder, adoptionFiles.backup);
  const backup = await readBytes(backupPath);
  if (contentDigest(backup) !== record.before) {
    throw new GatewayError(
      "CONFIG_INVALID",
      `\`${backupPath}\`: expected the bytes that were read at the adoption, got others`,
    );
  }
  const digest = contentDigest(current.bytes);
  if (digest === record.before) return "unchanged";
  if (digest !== record.after) {
    const next = `put the entries of \`${backupPath}\` back in place of the gateway's by hand (\`diff ${backupPath} ${current.path}\`)`;
    throw new GatewayError(
      "CONFIG_INVALID",
      `\`${current.path}\` was changed since the adoption: restoring would lose that; ${next}`,
    );
  }
  await replaceClientFile(current.path, backup, record.mode);
  return "restored";
}

async function readRecord(folder: string, file: string): Promise<AdoptionRecord> {
  const path = join(folder, adoptionFiles.record);
  const bytes = await readBytes(path).catch((cause: unknown) => {
    throw new GatewayError("CONFIG_INVALID", `\`${folder}\` holds no adoption; name its folder with \`--into\``, {
      cause,
    });
  });
  const record = parseRecord(bytes);
  if (record === undefined) throw new GatewayError("CONFIG_INVALID", `\`${path}\`: expected the record of an adoption`);
  if (record.file === file) return record;
  throw new GatewayError("CONFIG_INVALID", `\`${folder}\` adopted \`${record.file}\`, not \`${file}\``);
}

function parseRecord(bytes: Buffer): AdoptionRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
  return isJsonObject(value) && isRecord(value) ? (value as unknown as AdoptionRecord) : undefined;
}

function isRecord({ file, before, after, mode }: JsonObject): boolean {
  return [file, before, after].every((each) => typeof each === "string") && Number.isInteger(mode);
}
