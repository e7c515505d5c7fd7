import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, parseKept } from "../action/json.ts";
import type { Mark } from "../evidence/chain/high-water.ts";
import { checkpointKey, durably, type EvidenceStore, tenantIndexSaltKey } from "../evidence/record/key-space.ts";
import { parseCheckpoint } from "../evidence/tree/checkpoint.ts";
import { readPublishedHeadsByKey } from "../evidence/witness/published-heads.ts";
import type { TenantIndexEntry } from "../evidence/witness/tenant-index.ts";

/** The name of this shape. A reader refuses any other. */
const backupFormat = "gateway-backup-v1";

/** The first line. */
export interface BackupHeader {
  /** As the file was called when it was made. */
  readonly name: string;
  /** The moment that everything in it is of, RFC 3339. */
  readonly madeAt: string;
  /** The version that made it. */
  readonly gateway: string;
  /** The data folder it was made of, as its witnesses know it. */
  readonly installation: string;
}

/** The last line: the signature over all lines before it. */
export interface BackupSeal {
  /** Base64 of the raw Ed25519 key. */
  readonly publicKey: string;
  /** A C2SP signed note over the number of lines and the root of the tree over them. */
  readonly note: string;
}

export function headerLine({ name, madeAt, gateway, installation }: BackupHeader): string {
  return JSON.stringify({ format: backupFormat, name, made_at: madeAt, gateway, installation });
}

/** The head of one chain. Marks come before the first entry. */
export function markLine({ tenant, chain, seq, head }: Mark): string {
  return JSON.stringify({ tenant, chain, seq, head });
}

/** One key of the store with its value. Entries come in the order of their keys. */
export function entryLine(key: string, value: string): string {
  return JSON.stringify([key, value]);
}

export function sealLine({ publicKey, note }: BackupSeal): string {
  return JSON.stringify({ public_key: publicKey, note });
}

/** Throws BACKUP_REFUSED for a file of another kind or version. */
export function parseHeader(line: string): BackupHeader {
  const value = parseKept(line);
  const format = isJsonObject(value) ? value.format : undefined;
  if (!isJsonObject(value) || typeof format !== "string" || !format.startsWith("gateway-backup-")) {
    throw refuse("expected a backup, got a file of another kind");
  }
  if (format !== backupFormat) {
    throw refuse(
      `expected format \`${backupFormat}\`, got \`${format.slice(0, 32)}\`; restore it with the version that made it`,
    );
  }
  const { name, made_at: madeAt, gateway, installation } = value;
  if (!isText(name) || !isText(madeAt) || !isText(gateway) || !isText(installation)) {
    throw refuse("its first line is not whole");
  }
  return { name, madeAt, gateway, installation };
}

/** Undefined for a line that is no seal: then the end is missing. */
export function parseSeal(line: string): BackupSeal | undefined {
  const value = parseKept(line);
  if (!isJsonObject(value) || !isText(value.public_key) || !isText(value.note)) return undefined;
  return { publicKey: value.public_key, note: value.note };
}

/** A mark, or an entry. Throws BACKUP_REFUSED for anything else. */
export function parseContent(line: string): Mark | readonly [key: string, value: string] {
  const value = parseKept(line);
  if (Array.isArray(value)) {
    const [key, text] = value;
    if (value.length === 2 && isText(key) && typeof text === "string") return [key, text];
  } else if (isJsonObject(value)) {
    const { tenant, chain, seq, head } = value;
    if (isText(tenant) && isText(chain) && isText(head) && Number.isSafeInteger(seq)) {
      return { tenant, chain, seq: Number(seq), head };
    }
  }
  throw refuse("expected a mark or an entry, got another line");
}

export function refuse(detail: string, cause?: unknown): GatewayError {
  return new GatewayError("BACKUP_REFUSED", detail, { cause });
}

function isText(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "";
}

/**
 * Notes for every witness that the heads of this store may have been published to it, as after a push without an answer: a
 * gateway that continued after its store was read may have published them, and the store cannot know.
 */
export async function assumePublished(store: EvidenceStore, tenants: readonly string[]): Promise<void> {
  const entries: TenantIndexEntry[] = [];
  for (const tenant of tenants) {
    const checkpoint = parseCheckpoint((await store.get(checkpointKey(tenant))) ?? "");
    const salt = await store.get(tenantIndexSaltKey(tenant));
    if (checkpoint === undefined || salt === undefined) continue;
    const { chain, size, root } = checkpoint;
    entries.push({ tenant, chain, size, root: root.toString("hex"), salt });
  }
  for (const [key, { confirmed, pending }] of await readPublishedHeadsByKey(store)) {
    await store.put(key, JSON.stringify({ confirmed, pending: pending ?? entries }), durably);
  }
}
