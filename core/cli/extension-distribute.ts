import { resolve } from "node:path";
import type { Command } from "commander";
import { loadTrustFile } from "../config/trust-file.ts";
import { type FetchedArtifact, fetchArtifact, pushArtifact } from "../distribution/artifact.ts";
import { findCredential } from "../distribution/credential.ts";
import { installExtension, requireReplaceable } from "../distribution/install.ts";
import {
  type ExtensionLock,
  lockPath,
  readLock,
  requireLocked,
  requireSameExtension,
} from "../distribution/lock-file.ts";
import {
  type ArtifactReference,
  artifactReferenceShape,
  parseReference,
  parseTarballReference,
  type TarballReference,
  tarballReferenceShape,
} from "../distribution/reference.ts";
import { RegistryClient } from "../distribution/registry-client.ts";
import { fetchTarball } from "../distribution/tarball.ts";
import { EgressGuard } from "../egress/egress-guard.ts";
import { assembleFolder, readExtensionFolder } from "../trust/folder.ts";
import { trustError } from "../trust/refusal.ts";
import { type ExtensionKind, isRefused } from "../trust/verified-extension.ts";
import { readSigned, verifyExtension } from "../trust/verifier.ts";
import { readContent } from "./extension-sign.ts";
import { print } from "./print.ts";
import { checkPrivateHosts } from "./private-host.ts";

interface PushOptions {
  readonly privateHost: readonly string[];
  readonly json?: true;
}

interface PullOptions extends PushOptions {
  readonly trust: string;
  readonly update?: true;
}

/** `gateway pack push`, and the same of plugins and engines. */
export function pushExtension(
  kind: ExtensionKind,
): (folder: string, reference: string, options: PushOptions, command: Command) => Promise<void> {
  return (folder, text, options, command) => {
    const reference = readReference(text, command);
    if (reference.isDigest) return command.error("error: expected a reference with a tag, got one with a digest");
    checkPrivateHosts(options.privateHost, command);
    return push(kind, folder, reference, options);
  };
}

/** `gateway pack pull`, and the same of plugins and engines. */
export function pullExtension(
  kind: ExtensionKind,
): (reference: string, folder: string, options: PullOptions, command: Command) => Promise<void> {
  return (text, folder, options, command) => {
    checkPrivateHosts(options.privateHost, command);
    return pull(kind, readSource(text, command), folder, options);
  };
}

async function push(
  kind: ExtensionKind,
  path: string,
  reference: ArtifactReference,
  options: PushOptions,
): Promise<void> {
  const folder = await readExtensionFolder(path, kind);
  const signed = readSigned(folder);
  if (isRefused(signed)) throw trustError(path, signed);
  const { name, version, sequence } = signed.statement;
  const artifact = await withRegistry(reference, options, (registry) =>
    pushArtifact(folder, { name, version }, registry),
  );
  const { digest } = folder;
  const summary = { ok: true, name, version, sequence, digest, reference: reference.text, artifact };
  if (options.json) print(JSON.stringify(summary));
  else print(`${name} ${version}: pushed to ${reference.text}, ${artifact}`);
}

async function pull(
  kind: ExtensionKind,
  reference: ArtifactReference | TarballReference,
  path: string,
  options: PullOptions,
): Promise<void> {
  const { policy } = await loadTrustFile(options.trust);
  const lock = await readLock(path);
  await requireReplaceable(path, lock);
  const admit = (artifact: string): void => requireLocked(lock, artifact, options.update === true);
  const { artifact, files } = await fetchSource(kind, reference, options, admit);
  const folder = assembleFolder(path, kind, files);
  const verified = await verifyExtension(folder, policy, new Date().toISOString(), async (statement) => {
    requireSameExtension(lock, statement);
    return lock;
  });
  if (isRefused(verified)) throw trustError(reference.text, verified);
  const { name, version, sequence } = await readContent(kind, reference.text, verified);
  const { digest, signers } = verified;
  const next: ExtensionLock = { kind, name, version, sequence, source: reference.text, artifact, digest };
  await installExtension(path, folder, files, next);
  const summary = { ok: true, name, version, sequence, digest, signers, folder: resolve(path), lock: lockPath(path) };
  if (options.json) return print(JSON.stringify({ ...summary, artifact }));
  print(`${name} ${version}: pulled into ${path}, signed by ${signers.join(", ")}, ${digest}`);
}

function readReference(text: string, command: Command): ArtifactReference {
  const reference = parseReference(text);
  // The text is not repeated: it may hold a password.
  return reference ?? command.error(`error: argument 'reference' is invalid. expected ${artifactReferenceShape}`);
}

function readSource(text: string, command: Command): ArtifactReference | TarballReference {
  const source = parseReference(text) ?? parseTarballReference(text);
  const expected = `${artifactReferenceShape}, or ${tarballReferenceShape}`;
  return source ?? command.error(`error: argument 'reference' is invalid. expected ${expected}`);
}

async function fetchSource(
  kind: ExtensionKind,
  reference: ArtifactReference | TarballReference,
  options: PushOptions,
  admit: (artifact: string) => void,
): Promise<FetchedArtifact> {
  if (!("integrity" in reference))
    return withRegistry(reference, options, (registry) => fetchArtifact(kind, registry, admit));
  const credential = await findCredential(reference.url.host, process.env);
  return fetchTarball(kind, reference, egressOf(options), credential, admit);
}

async function withRegistry<T>(
  reference: ArtifactReference,
  options: PushOptions,
  work: (registry: RegistryClient) => Promise<T>,
): Promise<T> {
  const credential = await findCredential(reference.origin.host, process.env);
  const registry = new RegistryClient(reference, egressOf(options), credential);
  try {
    return await work(registry);
  } finally {
    await registry.close();
  }
}

function egressOf({ privateHost }: PushOptions): EgressGuard {
  return new EgressGuard({ privateHosts: privateHost, setting: "--private-host" });
}
