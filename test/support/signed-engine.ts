import { readExtensionFolder } from "../../core/trust/folder.ts";
import { statementBytes } from "../../core/trust/statement.ts";
import { type Signer, signBundle, type TrustWorld } from "./trust-world.ts";

/** Writes a folder of policies to `engines/<name>` of the world, and signs it where there is a signer. */
export async function writeEngine(
  world: TrustWorld,
  name: string,
  files: Readonly<Record<string, string | Uint8Array>>,
  signer?: Signer,
): Promise<void> {
  const folder = `engines/${name}`;
  for (const [path, content] of Object.entries(files)) await world.write(`${folder}/${path}`, content);
  if (signer === undefined) return;
  const { fileDigests } = await readExtensionFolder(world.path(folder), "engine");
  const manifest = String(files["engine.yaml"]);
  const sequence = Number(/^sequence: (\d+)$/m.exec(manifest)?.[1] ?? 0);
  const claim = { kind: "engine", name, version: "1.0.0", sequence } as const;
  const payload = statementBytes({
    ...claim,
    issuedAt: "2026-01-01T00:00:00.000Z",
    expiresAt: null,
    subjects: fileDigests,
  });
  await world.write(`${folder}/engine.sigstore.json`, signBundle(signer, payload));
}
