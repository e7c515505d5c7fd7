import type { ExtensionFolder } from "../extension/folder.ts";
import type { Statement } from "../extension/statement.ts";
import { isRefused, readSigned } from "../extension/verifier.ts";
import type { SignedContent } from "./signed-content.ts";

/** What is signed already. */
export interface Present {
  readonly payload: Buffer;
  readonly lines: readonly { readonly keyId: string; readonly text: string }[];
}

/** What is signed already, where it says just what would be signed now: then all signers vouch for one statement. */
export function sameStatement(
  folder: ExtensionFolder,
  content: SignedContent,
  expires: string | undefined,
): Present | undefined {
  const signed = readSigned(folder);
  if (isRefused(signed)) return undefined;
  const { statement, bundles } = signed;
  const same = (["name", "version", "sequence"] as const).every((key) => statement[key] === content[key]);
  if (!same || (expires !== undefined && expires !== statement.expiresAt)) return undefined;
  const texts = (folder.signature?.toString("utf8") ?? "").split("\n").filter((line) => line !== "");
  const lines = bundles.map(({ keyId }, index) => ({ keyId, text: `${texts[index]}\n` }));
  return { payload: bundles[0].payload, lines };
}

/** What is signed first. `issuedAt` counts where the manifest does not say when. */
export function newStatement(
  folder: ExtensionFolder,
  content: SignedContent,
  issuedAt: string,
  expires: string | undefined,
): Statement {
  return {
    kind: folder.kind,
    name: content.name,
    version: content.version,
    sequence: content.sequence,
    subjects: folder.fileDigests,
    issuedAt: content.issuedAt ?? issuedAt,
    expiresAt: expires ?? content.expiresAt ?? null,
  };
}
