import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { contentDigest } from "../action/canonical-json.ts";
import { GatewayError } from "../action/error.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import { extensionBounds, maxBytesOf, workplaces } from "../trust/folder.ts";
import type { ExtensionKind } from "../trust/verified-extension.ts";
import type { FetchedArtifact } from "./artifact.ts";
import { basicAuthorization, type RegistryCredential } from "./credential.ts";
import { artifactError, checkFileNames, quoteForeign } from "./file-name.ts";
import { HttpExchange, type HttpReply } from "./http-exchange.ts";
import { followRedirects } from "./redirect.ts";
import type { TarballReference } from "./reference.ts";
import { registryFaults, statusFault } from "./registry-fault.ts";
import { readTar } from "./tar.ts";

/** The folder that npm packs everything into. */
const folder = "package/";
/** Files of an author's working folders that are skipped; beyond them a package is not one extension. */
const maxSkipped = 1_024;
const maxEntries = extensionBounds.files + maxSkipped;
/** Bytes of a tarball: those of its files, with a header and a last block for each. */
const maxUnpacked = extensionBounds.bytes + maxEntries * 1_024 + 10_240;
const unpack = promisify(gunzip);

/**
 * Fetches an npm tarball into memory: at most 16 MiB, of the SHA-512 that the reference gives, checked before anything
 * reads it. `admit` is called next with its SHA-256, and throws to refuse it. Then it is unpacked within `extensionBounds`:
 * plain files with plain names below `package/`; an author's working folders are left out. Throws ARTIFACT_REFUSED,
 * REGISTRY_REFUSED and REGISTRY_UNREACHABLE.
 */
export async function fetchTarball(
  kind: ExtensionKind,
  reference: TarballReference,
  egress: EgressGuard,
  credential: RegistryCredential | undefined,
  admit: (artifact: string) => void,
): Promise<FetchedArtifact> {
  const bytes = await download(reference, egress, credential);
  const found = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  if (found !== reference.integrity)
    throw artifactError(`the tarball: expected the integrity ${reference.integrity}, got ${found}`);
  const artifact = contentDigest(bytes);
  admit(artifact);
  return { artifact, files: unpackFiles(kind, await unzip(bytes)) };
}

async function download(
  { url, text }: TarballReference,
  egress: EgressGuard,
  credential: RegistryCredential | undefined,
): Promise<Buffer> {
  const http = new HttpExchange(url, egress, registryFaults);
  const ask = (headers: Readonly<Record<string, string>>): Promise<HttpReply> =>
    http.send({ url, method: "GET", headers, maxBytes: extensionBounds.bytes });
  const refuse = (fault: string): GatewayError => new GatewayError("REGISTRY_REFUSED", `\`${text}\`: ${fault}`);
  try {
    let reply = await ask({});
    if (reply.status === 401 && credential !== undefined)
      reply = await ask({ authorization: basicAuthorization(credential) });
    const next = { headers: {}, maxBytes: extensionBounds.bytes };
    const { status, body } = await followRedirects(http, url, reply, next, refuse);
    if (status === 200) return body;
    throw statusFault({ status, body }, url, credential !== undefined, refuse);
  } finally {
    await http.close();
  }
}

async function unzip(bytes: Buffer): Promise<Buffer> {
  try {
    return await unpack(bytes, { maxOutputLength: maxUnpacked });
  } catch (cause) {
    const isLarge = (cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
    throw artifactError(
      isLarge ? `expected at most ${maxUnpacked} bytes unpacked, got more` : "expected a tarball in gzip, got none",
    );
  }
}

function unpackFiles(kind: ExtensionKind, tar: Buffer): ReadonlyMap<string, Buffer> {
  const files: (readonly [name: string, bytes: Buffer])[] = [];
  let total = 0;
  const most = (name: string): number => (isSkipped(kind, name) ? extensionBounds.bytes : maxBytesOf(name));
  for (const { name, bytes } of readTar(tar, maxEntries, most)) {
    if (!name.startsWith(folder)) throw artifactError(`expected files below \`${folder}\`, got ${quoteForeign(name)}`);
    if (isSkipped(kind, name)) continue;
    files.push([name.slice(folder.length), bytes]);
    total += bytes.length;
  }
  checkFileNames(
    kind,
    files.map(([name]) => name),
  );
  if (total > extensionBounds.bytes)
    throw artifactError(`expected at most ${extensionBounds.bytes} bytes in all, got ${total}`);
  return new Map(files);
}

/** Returns whether a file lies in a working folder, which npm packs and nobody signs. */
function isSkipped(kind: ExtensionKind, name: string): boolean {
  return workplaces[kind].some((workplace) => name.startsWith(`${folder}${workplace}/`));
}
