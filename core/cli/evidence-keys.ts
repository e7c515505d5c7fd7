import { resolve } from "node:path";
import type { Command } from "commander";
import { readKeyHistory } from "../evidence/key/key-history.ts";
import { evidenceOperations } from "../evidence/operation.ts";
import { type PublishedKeys, publishKeys } from "../evidence/witness/witness-publisher.ts";
import { type AdminOptions, callAdmin } from "./admin-client.ts";
import { changeEvidence, openEvidenceFolder } from "./evidence-folder.ts";
import { print, say } from "./print.ts";
import { type Column, printTable } from "./table.ts";

interface KeyOptions extends AdminOptions {
  readonly data?: string;
  readonly json?: true;
}

interface RotateOptions extends KeyOptions {
  readonly tenant?: string;
}

interface RotatedKey {
  readonly tenant: string;
  readonly key_id: string;
}

/** `gateway evidence keys list`. */
export async function listKeys(options: KeyOptions): Promise<void> {
  if (options.data !== undefined) return listFolder(resolve(options.data), options.json);
  printKeys(await callAdmin<PublishedKeys>(options, evidenceOperations.listEvidenceKeys), options.json);
}

async function listFolder(data: string, json: true | undefined): Promise<void> {
  const folder = await openEvidenceFolder(data);
  try {
    for (const tenant of folder.tenants) {
      const chain = folder.marks.get(tenant)?.chain ?? "";
      const history = await readKeyHistory(folder.store, tenant, chain);
      if (typeof history !== "string") printKeys({ tenant, chain, keys: publishKeys(history) }, json);
      else {
        process.exitCode = 1;
        say(`chain of tenant \`${tenant}\` ${history}`);
      }
    }
  } finally {
    await folder.close();
  }
}

type PublishedKey = PublishedKeys["keys"][number] & Pick<PublishedKeys, "tenant">;

const columns: readonly Column<PublishedKey>[] = [
  { title: "tenant", of: ({ tenant }) => tenant },
  { title: "public key", of: (key) => key.public_key, isWhole: true },
  { title: "key id", of: (key) => key.key_id, isWhole: true },
  { title: "first record", isNumber: true, of: ({ from_size: from }) => String(from - 1) },
  { title: "last record", isNumber: true, of: ({ to_size: to }) => (to === null ? "" : String(to - 1)) },
];

function printKeys(published: PublishedKeys, json: true | undefined): void {
  const { tenant, keys } = published;
  if (json) print(JSON.stringify(published));
  else
    printTable(
      columns,
      keys.map((key) => ({ ...key, tenant })),
    );
}

/** `gateway evidence keys rotate`. */
export async function rotateKey(options: RotateOptions, command: Command): Promise<void> {
  const { data, tenant, json } = options;
  if ((data === undefined) !== (tenant === undefined)) {
    return command.error("error: expected both `--data <folder>` and `--tenant <name>`, or neither");
  }
  const rotated =
    data === undefined || tenant === undefined
      ? await callAdmin<RotatedKey>(options, evidenceOperations.rotateEvidenceKey)
      : await rotateInFolder(resolve(data), tenant);
  const { tenant: owner, key_id: id } = rotated;
  print(json ? JSON.stringify(rotated) : `${owner}: now signed by key ${id}`);
}

async function rotateInFolder(data: string, tenant: string): Promise<RotatedKey> {
  const keyId = await changeEvidence(data, tenant, "gateway evidence keys rotate", (ledger) =>
    ledger.rotateKey(tenant),
  );
  return { tenant, key_id: keyId };
}
