import { contentDigest } from "../action/canonical-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import { extensionBounds, maxBytesOf } from "../trust/folder.ts";
import type { ExtensionKind } from "../trust/verified-extension.ts";
import { artifactError, checkFileNames, quoteForeign } from "./file-name.ts";

/** The media type of manifests; the only one that is accepted. */
export const manifestType = "application/vnd.oci.image.manifest.v1+json";
const artifactTypes: Readonly<Record<ExtensionKind, string>> = {
  pack: "application/vnd.agent-governance-gateway.pack.v1",
  plugin: "application/vnd.agent-governance-gateway.plugin.v1",
  engine: "application/vnd.agent-governance-gateway.engine.v1",
};
const fileType = "application/vnd.agent-governance-gateway.file.v1";
const titleKey = "org.opencontainers.image.title";
const versionKey = "org.opencontainers.image.version";

/** The content of every artifact's config, which OCI 1.1 asks for and nothing reads. */
export const emptyConfig: Buffer = Buffer.from("{}");
const emptyDescriptor = {
  mediaType: "application/vnd.oci.empty.v1+json",
  digest: contentDigest(emptyConfig),
  size: emptyConfig.length,
} as const;

/** Bytes of a manifest: 256 layers with the longest names take less. */
export const maxManifest = 524_288;
const bounds = { depth: 8, nodes: 8_192, stringLength: 4_096, reader: "exact" } as const;
const digestShape = /^sha256:[0-9a-f]{64}$/;

/** One file of an artifact. */
export interface FileLayer {
  readonly name: string;
  /** `sha256:<hex>` of its bytes. */
  readonly digest: string;
  readonly size: number;
}

/** Encodes the manifest of an extension: the same files under the same name and version give the same bytes. */
export function encodeManifest(
  kind: ExtensionKind,
  { name, version }: { readonly name: string; readonly version: string },
  files: ReadonlyMap<string, Buffer>,
): Buffer {
  const layers = Array.from(files, ([file, bytes]) => ({
    mediaType: fileType,
    digest: contentDigest(bytes),
    size: bytes.length,
    annotations: { [titleKey]: file },
  }));
  const manifest = {
    schemaVersion: 2,
    mediaType: manifestType,
    artifactType: artifactTypes[kind],
    config: emptyDescriptor,
    layers: layers.toSorted((a, b) => (a.annotations[titleKey] < b.annotations[titleKey] ? -1 : 1)),
    annotations: { [titleKey]: name, [versionKey]: version },
  };
  return Buffer.from(JSON.stringify(manifest));
}

/**
 * Reads the manifest of a pack or a plugin, and checks the name and the size of each file and all of them together.
 * Nothing reads its config and its annotations; any other member that is not checked is refused. Throws ARTIFACT_REFUSED.
 */
export function readArtifactManifest(kind: ExtensionKind, bytes: Buffer): readonly FileLayer[] {
  const manifest = parseManifest(bytes);
  requireMember(manifest.schemaVersion === 2, "`schemaVersion` 2", manifest.schemaVersion);
  requireMember(manifest.mediaType === manifestType, `the media type \`${manifestType}\``, manifest.mediaType);
  const type = artifactTypes[kind];
  requireMember(
    manifest.artifactType === type,
    `the artifact type \`${type}\` of ${kind === "engine" ? "an" : "a"} ${kind}`,
    manifest.artifactType,
  );
  const { layers } = manifest;
  if (!Array.isArray(layers)) throw artifactError("expected a manifest with `layers`, got none");
  if (layers.length > extensionBounds.files)
    throw artifactError(`expected at most ${extensionBounds.files} layers, got ${layers.length}`);
  const files = (layers as readonly Json[]).map(readLayer);
  checkFileNames(
    kind,
    files.map(({ name }) => name),
  );
  const total = files.reduce((sum, { size }) => sum + size, 0);
  if (total > extensionBounds.bytes)
    throw artifactError(`expected at most ${extensionBounds.bytes} bytes in all, got ${total}`);
  return files;
}

function parseManifest(bytes: Buffer): JsonObject {
  let value: Json;
  try {
    value = parseStrictJson(bytes, bounds);
  } catch {
    throw artifactError("expected a manifest in JSON, got something else");
  }
  if (!isJsonObject(value)) throw artifactError("expected a manifest that is a JSON object");
  refuseOthers(value, ["schemaVersion", "mediaType", "artifactType", "config", "layers", "annotations"], "a manifest");
  return value;
}

function readLayer(layer: Json, index: number): FileLayer {
  const where = `layer ${index + 1}`;
  if (!isJsonObject(layer)) throw artifactError(`${where}: expected a descriptor`);
  refuseOthers(layer, ["mediaType", "digest", "size", "annotations"], where);
  const { mediaType, digest, size, annotations } = layer;
  requireMember(mediaType === fileType, `${where} of the media type \`${fileType}\``, mediaType);
  const name = isJsonObject(annotations) ? annotations[titleKey] : undefined;
  if (typeof name !== "string") throw artifactError(`${where}: expected the annotation \`${titleKey}\`, got none`);
  if (typeof digest !== "string" || !digestShape.test(digest))
    throw artifactError(`${where}: expected a digest \`sha256:<hex>\`, got ${quoteForeign(digest)}`);
  if (typeof size !== "number" || !Number.isInteger(size) || size < 0 || size > maxBytesOf(name))
    throw artifactError(`${where}: expected at most ${maxBytesOf(name)} bytes, got ${quoteForeign(size)}`);
  return { name, digest, size };
}

function refuseOthers(value: JsonObject, known: readonly string[], where: string): void {
  const other = Object.keys(value).find((name) => !known.includes(name));
  if (other !== undefined) throw artifactError(`${where}: expected no member ${quoteForeign(other)}`);
}

function requireMember(held: boolean, expected: string, got: Json | undefined): void {
  if (!held) throw artifactError(`expected ${expected}, got ${quoteForeign(got)}`);
}
