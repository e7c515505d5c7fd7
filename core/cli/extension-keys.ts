import { writeFile } from "node:fs/promises";
import { Command } from "commander";
import { generateSigner } from "../extension/signing.ts";
import { GatewayError } from "../kernel/error.ts";

/** `gateway pack keys` and `gateway plugin keys`: one key signs both kinds. */
export function signingKeysCommand(): Command {
  const keys = new Command("keys").description("the keys that sign packs and plugins");
  keys
    .command("new")
    .description("make an Ed25519 key, write its private half to a new file, and print the public half")
    .argument("<file>", "where the private key goes, readable by this user alone; what is there stays")
    .option("--json", "print JSON")
    .action(makeKey);
  return keys;
}

async function makeKey(file: string, { json }: { readonly json?: true }): Promise<void> {
  const { pem, public: known } = generateSigner();
  try {
    await writeFile(file, pem, { mode: 0o600, flag: "wx" });
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? String(cause);
    const reason = code === "EEXIST" ? "there is a file already" : code;
    throw new GatewayError("KEY_UNUSABLE", `\`${file}\` cannot be written: ${reason}`, { cause });
  }
  const told = { key: known.spki, key_id: known.id };
  process.stdout.write(json ? `${JSON.stringify(told)}\n` : `key: ${known.spki}\nkey_id: ${known.id}\n`);
}
