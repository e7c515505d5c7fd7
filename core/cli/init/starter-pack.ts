import { cp } from "node:fs/promises";
import { join } from "node:path";
import { readExtensionFolder, signatureFiles } from "../../extension/folder.ts";
import type { ExtensionSigner } from "../../extension/signing.ts";
import { statementBytes } from "../../extension/statement.ts";
import { acceptUnverified } from "../../extension/unverified.ts";
import { newStatement } from "../extension-statement.ts";
import { replaceFile } from "../replace-file.ts";
import { installation } from "../scaffold.ts";
import { readContent } from "../signed-content.ts";

/** Copies a shipped pack into a new folder and signs the copy. */
export async function copyPack(name: string, folder: string, signer: ExtensionSigner): Promise<void> {
  await cp(join(installation, "policy-packs", name), folder, { recursive: true, errorOnExist: true, force: false });
  const read = await readExtensionFolder(folder, "pack");
  const content = await readContent("pack", folder, acceptUnverified(read, null));
  const statement = newStatement(read, content, new Date().toISOString(), undefined);
  await replaceFile(join(folder, signatureFiles.pack), signer.sign(statementBytes(statement)));
}
