import { GatewayError } from "../../action/error.ts";
import type { JsonObject } from "../../action/json.ts";
import type { SigningKey } from "../../action/signing-key.ts";
import type { KeyStore } from "../key/key-folder.ts";
import type { ChainTable } from "./chain-table.ts";
import type { Writer } from "./writer.ts";

interface KeyRotationParts {
  readonly chains: ChainTable;
  readonly keys: KeyStore;
  readonly writer: Writer;
}

/**
 * Rotates the signing key of a tenant's chain while others go on recording, and returns the id of the new key. The
 * rotation is a record that both keys sign; whatever is sealed after it is signed by the new key alone. `asked` is the
 * detail of an `admin` record right before it, in the same batch: who asked for the rotation. Durable when it resolves.
 * Where it rejects with EVIDENCE_UNAVAILABLE, the old key stays in force unless the disk kept what it did not confirm.
 */
export async function rotateSigningKey(parts: KeyRotationParts, tenant: string, asked?: JsonObject): Promise<string> {
  const { chains, writer } = parts;
  await chains.open(tenant);
  writer.commit.admit("bounded"); // before the key is made: a disk that fails must not fill with keys
  const successor = await createKey(parts.keys);
  const chain = chains.get(tenant); // again: the tenant may have been refused meanwhile
  writer.commit.admit("bounded");
  if (asked !== undefined) void writer.appendEvent(chain, { kind: "admin", detail: asked });
  await writer.appendRotation(chain, successor);
  return successor.id;
}

async function createKey(keys: KeyStore): Promise<SigningKey> {
  try {
    return await keys.create();
  } catch (cause) {
    throw new GatewayError("EVIDENCE_UNAVAILABLE", "a new signing key cannot be kept; the old one stays in force", {
      cause,
    });
  }
}
