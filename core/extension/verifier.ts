import { type TrustMaterial, toSignedEntity, Verifier } from "@sigstore/verify";
import { contentDigest } from "../kernel/digest.ts";
import { readPublicKey } from "../kernel/public-key.ts";
import type { TrustedKey, TrustPolicy } from "../kernel/trust-policy.ts";
import { type BuildStatement, VerifiedExtension } from "../kernel/verified-extension.ts";
import { readBuildStatement } from "./build-statement.ts";
import type { ExtensionFolder } from "./folder.ts";
import { proveIdentity } from "./identity-proof.ts";
import { judgeTrust, type SeenSequence } from "./judgement.ts";
import { type CheckedSignature, isBy } from "./quorum.ts";
import { Refusal, type Refused } from "./refusal.ts";
import { readSignatureFile, type SignatureBundle } from "./signature-file.ts";
import { compareSubjects, readStatement, type Statement } from "./statement.ts";

/** What an extension's signature file says of it. Nothing is decided: anybody can sign. */
export interface SignedFolder {
  readonly statement: Statement;
  readonly bundles: readonly [SignatureBundle, ...SignatureBundle[]];
  /** Null: the extension brings none. */
  readonly build: BuildStatement | null;
  /** `sha256:<hex>` of the signature file. */
  readonly bundleDigest: string;
  readonly statementDigest: string;
}

/** Finds what was trusted before under the name that a statement claims. */
export type SeenLookup = (statement: Statement) => Promise<SeenSequence | undefined>;

/**
 * Reads what is signed, and holds the folder to it: every file listed, none missing, each as it was. The failed check
 * comes back as `Refused`.
 */
export function readSigned(folder: ExtensionFolder): SignedFolder | Refused {
  return refusedOr(() => {
    if (folder.signature === undefined) throw new Refusal("unsigned");
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
 * The extension, trusted by this policy at this time (RFC 3339, milliseconds, UTC), or the check that failed.
 * The only maker of a trusted VerifiedExtension.
 */
export async function verifyExtension(
  folder: ExtensionFolder,
  policy: TrustPolicy,
  now: string,
  lookUp: SeenLookup,
): Promise<VerifiedExtension | Refused> {
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

export function isRefused<T extends object>(result: T | Refused): result is Refused {
  return !(result instanceof VerifiedExtension) && "check" in result;
}

function refusedOr<T>(read: () => T): T | Refused {
  try {
    return read();
  } catch (cause) {
    if (!(cause instanceof Refusal)) throw cause;
    return { check: cause.check, detail: cause.detail };
  }
}

/** Every signature of those whom the policy names, against the key it trusts or the authorities of its root. */
function checkSignatures(bundles: readonly SignatureBundle[], policy: TrustPolicy): readonly CheckedSignature[] {
  const signers = [...policy.allOf, ...(policy.anyOf?.signers ?? [])];
  return bundles.map((signed): CheckedSignature => {
    const { keyId, certificate, bundle } = signed;
    const claim = { keyId, identity: certificate?.identity ?? null, times: [] };
    const signer = signers.find((each) => isBy(claim, each));
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
    // Time stamps and logs belong to keys that live for minutes; these keys have their own validity, judged apart.
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
