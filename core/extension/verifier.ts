import { type TrustMaterial, toSignedEntity, Verifier } from "@sigstore/verify";
import { contentDigest } from "../kernel/digest.ts";
import { readPublicKey } from "../kernel/public-key.ts";
import type { TrustedKey, TrustPolicy } from "../kernel/trust-policy.ts";
import { VerifiedExtension } from "../kernel/verified-extension.ts";
import type { ExtensionFolder } from "./folder.ts";
import { type CheckedSignature, judgeTrust, type SeenSequence } from "./judgement.ts";
import { Refusal, type Refused } from "./refusal.ts";
import { readSignatureFile, type SignatureBundle } from "./signature-file.ts";
import { compareSubjects, readStatement, type Statement } from "./statement.ts";

/** What an extension's signature file says of it. Nothing is decided: anybody can sign. */
export interface SignedFolder {
  readonly statement: Statement;
  readonly bundles: readonly SignatureBundle[];
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
    const bundleDigest = contentDigest(folder.signature);
    return { statement, bundles, bundleDigest, statementDigest: contentDigest(payload) };
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
  const { statement, bundleDigest } = signed;
  const { kind, name, version, sequence } = statement;
  const signatures = checkSignatures(signed.bundles, policy);
  const digests = digestsOf(folder, signed);
  const seen = await lookUp(statement);
  return refusedOr(() => {
    const trusted = judgeTrust({ statement, digests, digest: folder.digest, signatures }, policy, now, seen);
    return VerifiedExtension.admitTrusted(folder, {
      ...trusted,
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

/** Every signature against the key it names, of the keys that the policy names. */
function checkSignatures(bundles: readonly SignatureBundle[], policy: TrustPolicy): readonly CheckedSignature[] {
  const keys = new Map([...policy.allOf, ...(policy.anyOf?.signers ?? [])].map((key) => [key.keyId, key]));
  return bundles.map((signed) => {
    const key = keys.get(signed.keyId);
    return { keyId: signed.keyId, valid: key === undefined ? null : isSignedBy(signed, key) };
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

function trustMaterial({ spki, name }: TrustedKey): TrustMaterial {
  const publicKey = readPublicKey(spki)?.key;
  if (publicKey === undefined) throw new TypeError(`trustMaterial: expected a public key of \`${name}\``);
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
