import { resolve } from "node:path";
import { Command } from "commander";
import { readKeyHistory } from "../evidence/key/key-history.ts";

import { type PublishedKeys, publishKeys } from "../evidence/witness/witness-publisher.ts";
import { type AdminOptions, adminOption, askJson } from "./admin-client.ts";
import { changeEvidence, openEvidenceFolder } from "./evidence-folder.ts";

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

/** `gateway evidence keys`: the keys that sign each tenant's chain. */
export function evidenceKeysCommand(): Command {
  const keys = new Command("keys").description("the keys that sign evidence: one a tenant at a time");
  keys
    .command("list", { isDefault: true })
    .description("print every public key and the sizes of the chain it signed for; give the first one to who verifies")
    .option("-d, --data <folder>", "all tenants of a data folder; no gateway may run on it")
    .addOption(adminOption())
    .option("--json", "print JSON")
    .action(listKeys);
  keys
    .command("rotate")
    .description("make a new key for a tenant, and hand its chain over by a record that both keys sign")
    .option("-d, --data <folder>", "in a data folder; no gateway may run on it")
    .option("--tenant <name>", "with --data: whose chain; a running gateway knows it by the key")
    .addOption(adminOption())
    .option("--json", "print JSON")
    .action(rotateKey);
  return keys;
}

async function listKeys(options: KeyOptions): Promise<void> {
  if (options.data !== undefined) return listFolder(resolve(options.data), options.json);
  print(await askJson<PublishedKeys>(options, "/admin/v1/evidence/keys"), options.json);
}

async function listFolder(data: string, json: true | undefined): Promise<void> {
  const folder = await openEvidenceFolder(data);
  try {
    for (const tenant of folder.tenants) {
      const chain = folder.marks.get(tenant)?.chain ?? "";
      const history = await readKeyHistory(folder.store, tenant, chain);
      if (typeof history !== "string") print({ tenant, chain, keys: publishKeys(history) }, json);
      else {
        process.exitCode = 1;
        process.stderr.write(`gateway: chain of tenant \`${tenant}\` ${history}\n`);
      }
    }
  } finally {
    await folder.close();
  }
}

function print(listed: PublishedKeys, json: true | undefined): void {
  process.stdout.write(json ? `${JSON.stringify(listed)}\n` : describeKeys(listed));
}

function describeKeys({ tenant, keys }: PublishedKeys): string {
  const lines = keys.map(({ key_id: id, public_key: key, from_size: from, to_size: to }) => {
    return `  ${key}  key ${id}, from record ${from - 1}${to === null ? "" : ` to ${to - 1}`}\n`;
  });
  return `${tenant}\n${lines.join("")}`;
}

async function rotateKey(options: RotateOptions, command: Command): Promise<void> {
  const { data, tenant, json } = options;
  if ((data === undefined) !== (tenant === undefined)) {
    return command.error("error: expected both `--data <folder>` and `--tenant <name>`, or neither");
  }
  const rotated =
    data === undefined || tenant === undefined
      ? await askJson<RotatedKey>(options, "/admin/v1/evidence/keys/rotate", "POST")
      : await rotateInFolder(resolve(data), tenant);
  const { tenant: whose, key_id: id } = rotated;
  process.stdout.write(json ? `${JSON.stringify(rotated)}\n` : `${whose}: now signed by key ${id}\n`);
}

async function rotateInFolder(data: string, tenant: string): Promise<RotatedKey> {
  const keyId = await changeEvidence(data, tenant, "gateway evidence keys rotate", (ledger) =>
    ledger.rotateKey(tenant),
  );
  return { tenant, key_id: keyId };
}
