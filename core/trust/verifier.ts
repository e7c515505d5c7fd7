import { type TrustMaterial, toSignedEntity, Verifier } from "@sigstore/verify";
import { contentDigest } from "../action/canonical-json.ts";
import { readPublicKey } from "../action/signing-key.ts";
import type { TrustedKey, TrustPolicy } from "../config/trust-policy.ts";
import { proveBuild, type ReadBuild, readBuild } from "./build.ts";
import type { ExtensionFolder } from "./folder.ts";
import { proveIdentity } from "./identity.ts";
import { type CheckedSignature, isSignedBySigner, judgeTrust, type SeenSequence } from "./quorum.ts";
import { type TrustRefusal, TrustRefusalError } from "./refusal.ts";
import { readSignatureFile, type SignatureBundle } from "./signature-file.ts";
import { compareSubjects, readStatement, type Statement } from "./statement.ts";
import { isRefused, VerifiedExtension } from "./verified-extension.ts";

/** The contents of a signature file; not verified, since anybody can sign. */
interface SignedFolder {
  readonly statement: Statement;
  readonly bundles: readonly [SignatureBundle, ...SignatureBundle[]];
  /** Null where the extension has none. */
  readonly build: ReadBuild | null;
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
    const build = readBuild(folder);
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
      build: proveBuild(build, folder, policy),
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
