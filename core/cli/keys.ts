import { randomBytes } from "node:crypto";
import { stringify } from "yaml";
import type { Role } from "../action/role.ts";
import { type GeneratedKey, generateKey } from "../identity/key-ring.ts";

interface NewKeyOptions {
  readonly id?: string;
  readonly tenant: string;
  readonly role: Role;
  readonly json?: true;
}

/** `gateway keys new`. Prints the key once and stores it nowhere. */
export function createKey(options: NewKeyOptions): void {
  printKey(generateKey(randomBytes), options);
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
  process.stderr.write("The rest goes into gateway.yaml, and holds only the hash of the key.\n");
}
