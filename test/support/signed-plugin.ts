import { cp } from "node:fs/promises";
import { join } from "node:path";
import { readExtensionFolder } from "../../core/trust/folder.ts";
import { statementBytes } from "../../core/trust/statement.ts";
import { type FirstParty, folderOf } from "./first-party.ts";
import { type Signer, signBundle, type TrustWorld } from "./trust-world.ts";

/** Puts a plugin of ours below `plugins/` of the world, signed; its digest. */
export async function signCopy(world: TrustWorld, name: FirstParty, signer: Signer): Promise<string> {
  const folder = join(world.folder, "plugins", name);
  const filter = (path: string): boolean => !/[/\\]build([/\\]|$)/.test(path.slice(folderOf(name).length));
  await cp(folderOf(name), folder, { recursive: true, filter });
  const { digest, fileDigests } = await readExtensionFolder(folder, "plugin");
  const claim = { kind: "plugin", name, version: "1.0.0", sequence: 0, issuedAt: "2026-01-01T00:00:00.000Z" } as const;
  const payload = statementBytes({ ...claim, expiresAt: null, subjects: fileDigests });
  await world.write(`plugins/${name}/plugin.sigstore.json`, signBundle(signer, payload));
  return digest;
}
