import { resolve } from "node:path";
import { Command } from "commander";
import { readKeyHistory } from "../evidence/attested-head.ts";
import { openEvidenceFolder } from "./evidence-folder.ts";
import { changeEvidence } from "./offline-ledger.ts";

interface FolderOptions {
  readonly data: string;
  readonly json?: true;
}

interface RotateOptions extends FolderOptions {
  readonly tenant: string;
}

interface ListedKey {
  readonly key_id: string;
  readonly public_key: string;
  readonly from_size: number;
  readonly to_size: number | null;
}

/** `gateway evidence keys`: the keys that sign each tenant's chain. */
export function evidenceKeysCommand(): Command {
  const keys = new Command("keys").description("the keys that sign evidence: one a tenant at a time");
  keys
    .command("list", { isDefault: true })
    .description("print every public key and the sizes of the chain it signed for; give the first one to who verifies")
    .requiredOption("-d, --data <folder>", "data folder; no gateway may run on it")
    .option("--json", "print JSON")
    .action(listKeys);
  keys
    .command("rotate")
    .description("make a new key for a tenant, and hand its chain over by a record that both keys sign")
    .requiredOption("-d, --data <folder>", "data folder; no gateway may run on it")
    .requiredOption("--tenant <name>", "whose chain")
    .option("--json", "print JSON")
    .action(rotateKey);
  return keys;
}

async function listKeys({ data, json }: FolderOptions): Promise<void> {
  const folder = await openEvidenceFolder(resolve(data));
  try {
    for (const tenant of folder.tenants) {
      const chain = folder.marks.get(tenant)?.chain ?? "";
      const history = await readKeyHistory(folder.store, tenant, chain);
      if (typeof history === "string") {
        process.exitCode = 1;
        process.stderr.write(`gateway: chain of tenant \`${tenant}\` ${history}\n`);
        continue;
      }
      const keys = history.tenures.map(({ key, fromSize, toSize }): ListedKey => {
        return { key_id: key.id, public_key: key.text, from_size: fromSize, to_size: toSize };
      });
      process.stdout.write(json ? `${JSON.stringify({ tenant, chain, keys })}\n` : describeKeys(tenant, keys));
    }
  } finally {
    await folder.close();
  }
}

function describeKeys(tenant: string, keys: readonly ListedKey[]): string {
  const lines = keys.map(({ key_id: id, public_key: key, from_size: from, to_size: to }) => {
    return `  ${key}  key ${id}, from record ${from - 1}${to === null ? "" : ` to ${to - 1}`}\n`;
  });
  return `${tenant}\n${lines.join("")}`;
}

async function rotateKey({ data, tenant, json }: RotateOptions): Promise<void> {
  const keyId = await changeEvidence(resolve(data), tenant, "gateway evidence keys rotate", (ledger) =>
    ledger.rotateKey(tenant),
  );
  process.stdout.write(
    json ? `${JSON.stringify({ tenant, key_id: keyId })}\n` : `${tenant}: now signed by key ${keyId}\n`,
  );
}
