import { contentDigest } from "../action/canonical-json.ts";
import type { ExtensionFolder } from "../trust/folder.ts";
import { signatureFiles } from "../trust/folder.ts";
import type { ExtensionKind } from "../trust/verified-extension.ts";
import { checkFileNames } from "./file-name.ts";
import { emptyConfig, encodeManifest, readArtifactManifest } from "./manifest.ts";
import type { RegistryClient } from "./registry-client.ts";

/** An extension as a registry holds it. */
export interface FetchedArtifact {
  /** `sha256:<hex>` of its manifest, or of its tarball. */
  readonly artifact: string;
  /** Every file by its name, the signature file included; each has been checked against its source's digest. */
  readonly files: ReadonlyMap<string, Buffer>;
}

/**
 * Fetches an extension into memory. The manifest is checked before any file is asked for, and `admit` is called in between
 * with its digest: it throws to refuse the artifact. Throws ARTIFACT_REFUSED, and as RegistryClient does.
 */
export async function fetchArtifact(
  kind: ExtensionKind,
  registry: RegistryClient,
  admit: (artifact: string) => void,
): Promise<FetchedArtifact> {
  const manifest = await registry.fetchManifest();
  const artifact = contentDigest(manifest);
  const layers = readArtifactManifest(kind, manifest);
  admit(artifact);
  const files = new Map<string, Buffer>();
  for (const layer of layers) files.set(layer.name, await registry.fetchFile(layer));
  return { artifact, files };
}

/**
 * Uploads a signed extension and moves the reference's tag to it. Returns `sha256:<hex>` of its manifest: the same files
 * always have the same one. Throws ARTIFACT_REFUSED for names that a pull would refuse, and as RegistryClient does.
 */
export async function pushArtifact(
  { kind, files, signature }: ExtensionFolder,
  claim: { readonly name: string; readonly version: string },
  registry: RegistryClient,
): Promise<string> {
  const all = new Map([...files, ...(signature === undefined ? [] : [[signatureFiles[kind], signature] as const])]);
  checkFileNames(kind, [...all.keys()]);
  for (const bytes of [emptyConfig, ...all.values()]) await registry.pushBlob(bytes);
  const manifest = encodeManifest(kind, claim, all);
  await registry.pushManifest(manifest);
  return contentDigest(manifest);
}
