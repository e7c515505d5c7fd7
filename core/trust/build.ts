import type { Bundle } from "@sigstore/bundle";
import { contentDigest } from "../action/canonical-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import type { TrustPolicy } from "../config/trust-policy.ts";
import type { ExtensionFolder } from "./folder.ts";
import { hasSubject, isPlainText, matchesIdentity, proveIdentity, type SignerCertificate } from "./identity.ts";
import { TrustRefusalError } from "./refusal.ts";
import { readSignatureBundle } from "./signature-file.ts";
import { statementType } from "./statement.ts";
import type { BuildStatement } from "./verified-extension.ts";

/** The files with the build provenance, bare and in a Sigstore bundle; signed like every other file. */
export const buildFiles = { statement: "build.intoto.json", bundle: "build.sigstore.json" } as const;
const slsaProvenance = "https://slsa.dev/provenance/v1";
const bounds = { depth: 32, nodes: 16_384, stringLength: 65_536, reader: "exact" } as const;

/** The build provenance of an extension, not judged. */
export interface ReadBuild {
  readonly statement: BuildStatement;
  /** The builder's signature and certificate, not verified; null where the statement is bare. */
  readonly proof: { readonly bundle: Bundle; readonly certificate: SignerCertificate } | null;
}

/**
 * Reads the build statements of a folder, an in-toto Statement v1 each, SLSA provenance or another; null without one. Each
 * must have the digest of every module of the extension, or of one file where there is no module. The one in a bundle is
 * SLSA provenance and comes before a bare one.
 */
export function readBuild(folder: ExtensionFolder): ReadBuild | null {
  const bare = folder.files.get(buildFiles.statement);
  const claimed = bare === undefined ? null : { statement: readStatement(bare, bare, folder), proof: null };
  const bytes = folder.files.get(buildFiles.bundle);
  if (bytes === undefined) return claimed;
  const { payload, bundle, certificate } = readBuildBundle(bytes);
  const statement = readStatement(bytes, payload, folder);
  if (statement.predicateType !== slsaProvenance) throw new TrustRefusalError("build_malformed");
  return { statement, proof: { bundle, certificate } };
}

/**
 * Proves the build of an extension to be of the trust policy's builder, where it names one. Asked of
 * whatever has a module, as every plugin does; elsewhere a bundle is proven where there is one. Throws TrustRefusalError.
 */
export function proveBuild(
  build: ReadBuild | null,
  folder: ExtensionFolder,
  { builder, trustedRoot, revoked }: TrustPolicy,
): BuildStatement | null {
  const proof = build?.proof ?? null;
  if (builder === null || (proof === null && !isBuilt(folder))) return build?.statement ?? null;
  if (trustedRoot === null) throw new TypeError("proveBuild: expected a trusted root for the builder");
  if (build === null || proof === null) throw new TrustRefusalError("build_unproven");
  const { identity, keyId } = proof.certificate;
  const { issuer, subject } = identity;
  if (!matchesIdentity(identity, builder)) {
    const check = hasSubject(identity, builder.subject) ? "identity_issuer" : "identity_unknown";
    throw new TrustRefusalError(check, `\`${buildFiles.bundle}\`, \`${subject}\` of \`${issuer}\``);
  }
  const proven = revoked.keys.includes(keyId)
    ? ({ check: "key_revoked", detail: `\`${subject}\`` } as const)
    : proveIdentity(proof.bundle, proof.certificate, trustedRoot, revoked.keys);
  if ("check" in proven) throw new TrustRefusalError(proven.check, `\`${buildFiles.bundle}\`, ${proven.detail}`);
  const [signedAt] = proven;
  return { ...build.statement, provenBy: { issuer, subject, signedAt } };
}

function readBuildBundle(bytes: Buffer): {
  readonly payload: Buffer;
  readonly bundle: Bundle;
  readonly certificate: SignerCertificate;
} {
  try {
    const { payload, bundle, certificate } = readSignatureBundle(bytes, `\`${buildFiles.bundle}\``);
    if (certificate !== null) return { payload, bundle, certificate };
  } catch (cause) {
    if (!(cause instanceof TrustRefusalError)) throw cause;
  }
  throw new TrustRefusalError("build_malformed", `\`${buildFiles.bundle}\``);
}

function readStatement(file: Buffer, payload: Buffer, { fileDigests }: ExtensionFolder): BuildStatement {
  const { subject, predicateType, predicate } = parse(payload);
  const builder = predicateType === slsaProvenance ? builderOf(predicate) : null;
  if (!isPlainText(predicateType) || (builder !== null && !isPlainText(builder)))
    throw new TrustRefusalError("build_malformed");
  const built = readSubjects(subject);
  const modules = modulesOf(fileDigests);
  const wanted = modules.length > 0 ? modules : [...fileDigests].filter(([, digest]) => built.has(digest));
  const other = wanted.find(([, digest]) => !built.has(digest));
  if (other !== undefined) throw new TrustRefusalError("build_of_another", `\`${other[0]}\``);
  if (wanted.length === 0) throw new TrustRefusalError("build_of_another");
  return { digest: contentDigest(file), predicateType, builder, provenBy: null };
}

function isBuilt({ fileDigests }: ExtensionFolder): boolean {
  return modulesOf(fileDigests).length > 0;
}

function modulesOf(fileDigests: ReadonlyMap<string, string>): readonly (readonly [name: string, digest: string])[] {
  return [...fileDigests].filter(([name]) => name.endsWith(".wasm"));
}

function parse(bytes: Buffer): JsonObject {
  let value: Json;
  try {
    value = parseStrictJson(bytes, bounds);
  } catch {
    throw new TrustRefusalError("build_malformed");
  }
  if (!isJsonObject(value) || value._type !== statementType) throw new TrustRefusalError("build_malformed");
  return value;
}

/** Returns null where the predicate does not name a builder. */
function builderOf(predicate: Json | undefined): Json {
  return member(member(member(predicate, "runDetails"), "builder"), "id") ?? null;
}

function readSubjects(value: Json | undefined): ReadonlySet<string> {
  if (!Array.isArray(value)) throw new TrustRefusalError("build_malformed");
  const digests = (value as readonly Json[]).map((each) => member(member(each, "digest"), "sha256"));
  return new Set(digests.filter((digest) => typeof digest === "string"));
}

function member(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}
