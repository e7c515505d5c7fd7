import { resolve } from "node:path";
import type { Json, JsonObject } from "../action/json.ts";
import { type ExtensionClaim, extensionKinds } from "../trust/verified-extension.ts";
import { artifactError } from "./file-name.ts";
import { readStateFile } from "./state-file.ts";

/** The release of an extension that a pull has written into a folder. */
export interface ExtensionLock extends ExtensionClaim {
  /** The reference that was pulled, as its user wrote it. */
  readonly source: string;
  /** `sha256:<hex>` of the manifest in the registry, or of the tarball. */
  readonly artifact: string;
  /** `sha256:<hex>` of the extension, as `verify` and evidence name it. */
  readonly digest: string;
}

const bounds = { depth: 2, nodes: 32, stringLength: 1_024, reader: "exact" } as const;
const digestShape = /^sha256:[0-9a-f]{64}$/;

/** Returns the path of the lock file of a folder: beside it, so that it is neither signed nor loaded. */
export function lockPath(folder: string): string {
  return `${resolve(folder)}.lock.json`;
}

/** Reads the lock file of a folder; undefined where there is none. Throws STATE_UNUSABLE where it cannot be read. */
export function readLock(folder: string): Promise<ExtensionLock | undefined> {
  return readStateFile({ path: lockPath(folder), bounds, read: readMembers, noun: "the lock file of a pull" });
}

/** Returns the bytes of a lock file. */
export function encodeLock({ kind, name, version, sequence, source, artifact, digest }: ExtensionLock): string {
  return `${JSON.stringify({ lock_version: 1, kind, name, version, sequence, source, artifact, digest }, null, 2)}\n`;
}

/**
 * Refuses an artifact that is not the locked one, unless the user asks for another release (`update`). Throws
 * ARTIFACT_REFUSED.
 */
export function requireLocked(lock: ExtensionLock | undefined, artifact: string, update: boolean): void {
  if (lock === undefined || update || lock.artifact === artifact) return;
  const locked = `${lock.artifact} of ${lock.name} ${lock.version}`;
  throw artifactError(`expected the locked ${locked}, got ${artifact}; \`--update\` accepts another release`);
}

/** Refuses another extension in the place of the locked one. Throws ARTIFACT_REFUSED. */
export function requireSameExtension(lock: ExtensionLock | undefined, { kind, name }: ExtensionClaim): void {
  if (lock === undefined || (lock.kind === kind && lock.name === name)) return;
  throw artifactError(`expected the ${lock.kind} \`${lock.name}\` in this folder, got the ${kind} \`${name}\``);
}

function readMembers(object: JsonObject): ExtensionLock | undefined {
  if (object.lock_version !== 1) return undefined;
  const { name, version, sequence, source, artifact, digest } = object;
  const kind = extensionKinds.find((each) => each === object.kind);
  if (kind === undefined || typeof name !== "string" || typeof version !== "string") return undefined;
  if (typeof source !== "string" || typeof sequence !== "number") return undefined;
  if (!isDigest(artifact) || !isDigest(digest)) return undefined;
  return { kind, name, version, sequence, source, artifact, digest };
}

function isDigest(value: Json | undefined): value is string {
  return typeof value === "string" && digestShape.test(value);
}
