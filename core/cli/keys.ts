import { randomBytes } from "node:crypto";
import { Command, InvalidArgumentError, Option } from "commander";
import { stringify } from "yaml";
import { type Role, roles } from "../action/role.ts";
import { formats } from "../config/format.ts";
import { type GeneratedKey, generateKey } from "../identity/key-ring.ts";

interface NewKeyOptions {
  readonly id?: string;
  readonly tenant: string;
  readonly role: Role;
  readonly json?: true;
}

/** `gateway keys`. The key is printed once and kept nowhere. */
export function keysCommand(): Command {
  const keys = new Command("keys").description("API keys");
  keys
    .command("new")
    .description("make an API key and its entry for the configuration")
    .option("--id <name>", "name of the key (default: taken from its hash)", parseName)
    .option("--tenant <name>", "tenant of the key", parseName, "default")
    .addOption(new Option("--role <role>", "what the key may do").choices(roles).default("viewer"))
    .option("--json", "print JSON")
    .action((options: NewKeyOptions) => printKey(generateKey(randomBytes), options));
  return keys;
}

function printKey({ key, keyHash }: GeneratedKey, options: NewKeyOptions): void {
  const id = options.id ?? `key-${keyHash.slice("sha256:".length, "sha256:".length + 8)}`;
  const entry = { id, tenant: options.tenant, role: options.role, key_hash: keyHash };
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ key, entry })}\n`);
    return;
  }
  process.stdout.write(`${key}\n\n${stringify({ keys: [entry] }, { lineWidth: 0 })}`);
  process.stderr.write("\nThe first line is the key: give it to its user, it is not shown again.\n");
  process.stderr.write("The rest goes into gateway.yaml: it holds the key's hash only.\n");
}

/** A name of the configuration, or a mistake in the command line. */
export function parseName(value: string): string {
  if (!formats.name.test(value)) throw new InvalidArgumentError(`expected ${formats.name.expected}`);
  return value;
}
