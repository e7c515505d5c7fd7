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
  /** Throws EVIDENCE_UNAVAILABLE where a record would not be taken. */
  readonly admit: () => void;
}

/**
 * Hands a tenant's chain over to a new key, while others go on recording, and says which: the hand-over is a record that
 * both keys sign, and whatever is sealed after it is signed by the new key alone. `asked` is who asked for it: an
 * `admin` record right before, in the same batch. Durable when it resolves. Where it rejects with EVIDENCE_UNAVAILABLE,
 * the chain stays with its old key unless the disk kept what it refused to confirm.
 */
export async function rotateSigningKey(parts: KeyRotationParts, tenant: string, asked?: JsonObject): Promise<string> {
  const { chains, writer, admit } = parts;
  await chains.open(tenant);
  admit(); // before the key is made: a disk that fails must not fill with keys
  const successor = await createKey(parts.keys);
  const chain = chains.get(tenant); // asked again: the tenant may have been refused meanwhile
  admit();
  if (asked !== undefined) void writer.appendEvent(chain, { kind: "admin", detail: asked });
  await writer.appendRotation(chain, successor).durable;
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
