import type { ExtensionKind, VerifiedExtension } from "../kernel/verified-extension.ts";
import { compilePack } from "../policy/pack.ts";
import { readPlugin, readPluginTests } from "../policy/plugin-source.ts";

/** What an extension's manifest says of it. */
export interface SignedContent {
  readonly name: string;
  readonly version: string;
  readonly sequence: number;
  readonly issuedAt: string | undefined;
  readonly expiresAt: string | undefined;
}

/** Reads a manifest, and a pack's rules with it: what is unsound is not worth a signature. Throws as the loader does. */
export async function readContent(
  kind: ExtensionKind,
  path: string,
  extension: VerifiedExtension,
): Promise<SignedContent> {
  if (kind === "plugin") {
    const { name, version, sequence, settingsSchema } = readPlugin(path, extension, {});
    await readPluginTests(path, extension, settingsSchema);
    return { name, version, sequence, issuedAt: undefined, expiresAt: undefined };
  }
  const { pack } = await compilePack({
    extension,
    path,
    mode: "enforce",
    settings: {},
    shadowRules: [],
    clock: Date.now,
  });
  const { ref, sequence, issuedAt, expiresAt } = pack;
  return { name: ref.name, version: ref.version, sequence, issuedAt, expiresAt };
}
