import type { JsonObject } from "../kernel/json.ts";
import type { BuildStatement, ExtensionKind, ProvenIdentity, VerifiedExtension } from "../kernel/verified-extension.ts";
import type { SharedEvent } from "./tenant-record.ts";

/** An extension in force: what was vouched for, under the name and version it was compiled as. */
export interface LoadedExtension {
  readonly extension: VerifiedExtension;
  readonly name: string;
  readonly version: string;
}

/** An extension that was not loaded. What is null could not be read. */
export interface RefusedExtension {
  readonly kind: ExtensionKind;
  /** As its signature claims; anybody can sign. */
  readonly name: string | null;
  readonly version: string | null;
  readonly digest: string | null;
  readonly bundleDigest: string | null;
  /** The name of the check that failed. */
  readonly check: string;
}

/** The records of a change: what goes out of force, then what comes into it. What stays as it was is in none. */
export function extensionEvents(
  before: readonly LoadedExtension[],
  after: readonly LoadedExtension[],
): readonly SharedEvent[] {
  const stays = (each: LoadedExtension, others: readonly LoadedExtension[]): boolean =>
    others.some((other) => keyOf(other) === keyOf(each));
  return [
    ...before.filter((each) => !stays(each, after)).map((each) => loadedEvent("unloaded", each)),
    ...after.filter((each) => !stays(each, before)).map((each) => loadedEvent("loaded", each)),
  ];
}

export function refusalEvent({ kind, name, version, digest, bundleDigest, check }: RefusedExtension): SharedEvent {
  const trust = bundleDigest === null ? "unsigned" : "untrusted";
  const known = { event: "refused", kind, name, version, digest, signers: [], bundle_digest: bundleDigest, trust };
  return { kind: "extension", detail: { ...known, check } };
}

function loadedEvent(event: "loaded" | "unloaded", { extension, name, version }: LoadedExtension): SharedEvent {
  const { kind, digest, signers, bundleDigest, trust, check } = extension;
  const known = { event, kind, name, version, digest, signers, bundle_digest: bundleDigest, trust };
  const told = { ...known, ...provenanceOf(extension) };
  return { kind: "extension", detail: check === null ? told : { ...told, check } };
}

function provenanceOf({ identities, build }: VerifiedExtension): JsonObject {
  return {
    ...(identities.length === 0 ? {} : { identities: identities.map(tellIdentity) }),
    ...(build === null ? {} : { build: tellBuild(build) }),
  };
}

export function tellIdentity({ signer, issuer, subject, signedAt }: ProvenIdentity): JsonObject {
  return { signer, issuer, subject, signed_at: signedAt };
}

export function tellBuild({ digest, predicateType, builder }: BuildStatement): JsonObject {
  return { digest, predicate_type: predicateType, builder };
}

/** All that evidence says of it: a new signature under the same bytes is a load of its own. */
function keyOf(loaded: LoadedExtension): string {
  return JSON.stringify(loadedEvent("loaded", loaded).detail);
}
