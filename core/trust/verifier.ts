import { type TrustMaterial, toSignedEntity, Verifier } from "@sigstore/verify";
import { contentDigest } from "../action/canonical-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { readPublicKey } from "../action/signing-key.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import type { TrustedKey, TrustPolicy } from "../config/trust-policy.ts";
import type { ExtensionFolder } from "./folder.ts";
import { isPlainText, proveIdentity } from "./identity.ts";
import { type CheckedSignature, isSignedBySigner, judgeTrust, type SeenSequence } from "./quorum.ts";
import { type TrustRefusal, TrustRefusalError } from "./refusal.ts";
import { readSignatureFile, type SignatureBundle } from "./signature-file.ts";
import { compareSubjects, readStatement, type Statement, statementType } from "./statement.ts";
import { type BuildStatement, isRefused, VerifiedExtension } from "./verified-extension.ts";

/** The contents of a signature file; not verified, since anybody can sign. */
interface SignedFolder {
  readonly statement: Statement;
  readonly bundles: readonly [SignatureBundle, ...SignatureBundle[]];
  /** Null where the extension has none. */
  readonly build: BuildStatement | null;
  /** `sha256:<hex>` of the signature file. */
  readonly bundleDigest: string;
  readonly statementDigest: string;
}

/** Looks up the highest sequence trusted under a statement's name. */
export type SeenLookup = (statement: Statement) => Promise<SeenSequence | undefined>;

/**
 * Reads the signed statement and compares the folder with it: every file listed, none missing, none changed. Returns
 * the failed check as TrustRefusal.
 */
export function readSigned(folder: ExtensionFolder): SignedFolder | TrustRefusal {
  return refusedOr(() => {
    if (folder.signature === undefined) throw new TrustRefusalError("unsigned");
    const bundles = readSignatureFile(folder.signature);
    const [{ payload }] = bundles;
    const statement = readStatement(payload);
    compareSubjects(statement, folder);
    const build = readBuildStatement(folder);
    const bundleDigest = contentDigest(folder.signature);
    return { statement, bundles, build, bundleDigest, statementDigest: contentDigest(payload) };
  });
}

/**
 * Verifies an extension by the policy at this time (RFC 3339, milliseconds, UTC). Returns the trusted extension or the
 * failed check. The only maker of a trusted VerifiedExtension.
 */
export async function verifyExtension(
  folder: ExtensionFolder,
  policy: TrustPolicy,
  now: string,
  lookUp: SeenLookup,
): Promise<VerifiedExtension | TrustRefusal> {
  const signed = readSigned(folder);
  if (isRefused(signed)) return signed;
  const { statement, build, bundleDigest } = signed;
  const { kind, name, version, sequence } = statement;
  const signatures = checkSignatures(signed.bundles, policy);
  const digests = digestsOf(folder, signed);
  const seen = await lookUp(statement);
  return refusedOr(() => {
    const trusted = judgeTrust({ statement, digests, digest: folder.digest, signatures }, policy, now, seen);
    return VerifiedExtension.admitTrusted(folder, {
      ...trusted,
      build,
      bundleDigest,
      claim: { kind, name, version, sequence },
    });
  });
}

function refusedOr<T>(read: () => T): T | TrustRefusal {
  try {
    return read();
  } catch (cause) {
    if (!(cause instanceof TrustRefusalError)) throw cause;
    return { check: cause.check, detail: cause.detail };
  }
}

/** Checks every signature of a signer in the policy, against the trusted key or the authorities of the root. */
function checkSignatures(bundles: readonly SignatureBundle[], policy: TrustPolicy): readonly CheckedSignature[] {
  const signers = [...policy.allOf, ...(policy.anyOf?.signers ?? [])];
  return bundles.map((signed): CheckedSignature => {
    const { keyId, certificate, bundle } = signed;
    const claim = { keyId, identity: certificate?.identity ?? null, times: [] };
    const signer = signers.find((each) => isSignedBySigner(claim, each));
    if (signer === undefined) return { ...claim, proof: "unknown" };
    if (certificate === null) {
      const valid = signer.key !== null && isSignedBy(signed, signer.key);
      return { ...claim, proof: valid ? "valid" : { check: "signature_invalid", detail: undefined } };
    }
    if (policy.trustedRoot === null) throw new TypeError("checkSignatures: expected a trusted root for identities");
    const proven = proveIdentity(bundle, certificate, policy.trustedRoot, policy.revoked.keys);
    return "check" in proven ? { ...claim, proof: proven } : { ...claim, times: proven, proof: "valid" };
  });
}

function isSignedBy({ bundle }: SignatureBundle, key: TrustedKey): boolean {
  try {
    // Time stamps and logs are for short-lived keys; these keys have a validity of their own, judged separately.
    const thresholds = { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 };
    new Verifier(trustMaterial(key), thresholds).verify(toSignedEntity(bundle));
    return true;
  } catch {
    return false;
  }
}

function trustMaterial({ spki, keyId }: TrustedKey): TrustMaterial {
  const publicKey = readPublicKey(spki)?.key;
  if (publicKey === undefined) throw new TypeError(`trustMaterial: expected the public key \`${keyId}\``);
  return {
    certificateAuthorities: [],
    timestampAuthorities: [],
    tlogs: [],
    ctlogs: [],
    publicKey: () => ({ publicKey, validFor: () => true }),
  };
}

function digestsOf(folder: ExtensionFolder, signed: SignedFolder): ReadonlySet<string> {
  const files = Array.from(folder.fileDigests.values(), (hex) => `sha256:${hex}`);
  return new Set([folder.digest, signed.bundleDigest, signed.statementDigest, ...files]);
}

/** The file with the build provenance; signed like every other file. */
export const buildFile = "build.intoto.json";
const slsaProvenance = "https://slsa.dev/provenance/v1";
const bounds = { depth: 32, nodes: 16_384, stringLength: 65_536, reader: "exact" } as const;

/**
 * Reads an in-toto Statement v1, SLSA provenance or another; null without one. Its subjects must include the digest of
 * every module of the extension, or of one file where there is no module. The rest is the builder's claim and is not
 * judged.
 */
export function readBuildStatement({ files, fileDigests }: ExtensionFolder): BuildStatement | null {
  const bytes = files.get(buildFile);
  if (bytes === undefined) return null;
  const { subject, predicateType, predicate } = parse(bytes);
  const builder = predicateType === slsaProvenance ? builderOf(predicate) : null;
  if (!isPlainText(predicateType) || (builder !== null && !isPlainText(builder)))
    throw new TrustRefusalError("build_malformed");
  const built = readSubjects(subject);
  const modules = [...fileDigests].filter(([name]) => name.endsWith(".wasm"));
  const wanted = modules.length > 0 ? modules : [...fileDigests].filter(([, digest]) => built.has(digest));
  const other = wanted.find(([, digest]) => !built.has(digest));
  if (other !== undefined) throw new TrustRefusalError("build_of_another", `\`${other[0]}\``);
  if (wanted.length === 0) throw new TrustRefusalError("build_of_another");
  return { digest: contentDigest(bytes), predicateType, builder };
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
