import { canonicalJson } from "../action/canonical-json.ts";
import type { TrustedSigner, TrustPolicy } from "../config/trust-policy.ts";
import { hasSubject, type Identity, matchesIdentity } from "./identity.ts";
import { type TrustRefusal, TrustRefusalError } from "./refusal.ts";
import type { Statement } from "./statement.ts";
import type { ProvenIdentity } from "./verified-extension.ts";

/** One bundle with its signature checked; not yet judged by the policy. */
export interface CheckedSignature {
  /** The id of the signer's key or of the certificate's key. */
  readonly keyId: string;
  /** The identity in the certificate; null without a certificate. */
  readonly identity: Identity | null;
  /** Proven times of signing (RFC 3339, milliseconds, UTC; in order); none without a certificate. */
  readonly times: readonly string[];
  /** `unknown`: the policy does not name the signer, so the signature was not checked. */
  readonly proof: "valid" | "unknown" | TrustRefusal;
}

/** The trusted signers of an extension. */
interface Trusted {
  /** Names from the policy, sorted and unique. */
  readonly signers: readonly string[];
  /** The signers with an identity, sorted by name, each with its earliest time. */
  readonly identities: readonly ProvenIdentity[];
  /** True where all of them may only tighten. */
  readonly tightenOnly: boolean;
}

/**
 * Returns the signers that the policy requires, from signatures of which none is invalid. Throws where they are too
 * few.
 */
function requireSigners(signatures: readonly CheckedSignature[], policy: TrustPolicy, now: string): Trusted {
  const discounted: TrustRefusal[] = [];
  const counted: Counted[] = [];
  // A signer counts once, however many signatures or keys the signer has: a policy lists each once.
  const counts = (signer: TrustedSigner): boolean => {
    const own = signatures.filter((signature) => isSignedBySigner(signature, signer));
    const reasons = own.map((signature) => reasonAgainst(signature, signer, policy, now));
    const good = own.filter((_, index) => reasons[index] === undefined);
    if (good.length > 0) counted.push({ signer, signatures: good });
    else discounted.push(...reasons.filter((reason) => reason !== undefined));
    return good.length > 0;
  };
  const all = policy.allOf.filter(counts);
  const any = policy.anyOf?.signers.filter(counts) ?? [];
  const minimum = policy.anyOf?.minimum ?? 0;
  if (all.length === policy.allOf.length && any.length >= minimum && counted.length > 0) return trustedBy(counted);
  const [first] = [...discounted, ...unnamedIdentities(signatures, policy)];
  if (first !== undefined) throw new TrustRefusalError(first.check, first.detail);
  const absent = policy.allOf.filter((signer) => !all.includes(signer)).map(({ name }) => `\`${name}\` did not sign`);
  const few = any.length < minimum ? [`${any.length} of the ${minimum} that \`any_of\` asks for`] : [];
  throw new TrustRefusalError("signers_missing", [...absent, ...few].join(", "));
}

interface Counted {
  readonly signer: TrustedSigner;
  readonly signatures: readonly CheckedSignature[];
}

function trustedBy(counted: readonly Counted[]): Trusted {
  const proven = new Map<string, ProvenIdentity>();
  for (const { signer, signatures } of counted) {
    for (const { identity, times } of signatures) {
      const [signedAt] = times;
      if (identity === null || signedAt === undefined) continue;
      const { issuer, subject } = identity;
      const key = canonicalJson([signer.name, issuer, subject]);
      const before = proven.get(key);
      if (before === undefined || signedAt < before.signedAt) {
        proven.set(key, { signer: signer.name, issuer, subject, signedAt });
      }
    }
  }
  return {
    signers: [...new Set(counted.map(({ signer }) => signer.name))].sort(),
    identities: [...proven.keys()].sort().map((key) => proven.get(key) as ProvenIdentity),
    tightenOnly: counted.every(({ signer }) => signer.tightenOnly),
  };
}

/** Returns true if a signature is by this signer. A certificate counts by its identity, not by its key. */
export function isSignedBySigner(
  { keyId, identity }: Pick<CheckedSignature, "keyId" | "identity">,
  signer: TrustedSigner,
): boolean {
  if (identity === null) return signer.key?.keyId === keyId;
  return signer.identity !== null && matchesIdentity(identity, signer.identity);
}

/**
 * Returns why a signature does not count. A key has no trusted time of signing, so it is judged by the current time.
 */
function reasonAgainst(
  { keyId, identity, times, proof }: CheckedSignature,
  { name, notBefore, notAfter }: TrustedSigner,
  { revoked }: TrustPolicy,
  now: string,
): TrustRefusal | undefined {
  if (typeof proof === "object") return proof;
  if (revoked.keys.includes(keyId)) return { check: "key_revoked", detail: `\`${name}\`` };
  const signed = identity === null ? [now] : times;
  if (signed.some((time) => notBefore !== null && time < notBefore)) {
    return { check: "key_not_yet_valid", detail: `\`${name}\`, ${notBefore}` };
  }
  if (signed.some((time) => notAfter !== null && time >= notAfter)) {
    return { check: "key_expired", detail: `\`${name}\`, ${notAfter}` };
  }
  return undefined;
}

/** The identities that the policy does not name: the best reason to report where a signer is missing. */
function unnamedIdentities(
  signatures: readonly CheckedSignature[],
  { allOf, anyOf }: TrustPolicy,
): readonly TrustRefusal[] {
  const known = [...allOf, ...(anyOf?.signers ?? [])].flatMap(({ identity }) => identity ?? []);
  return signatures.flatMap(({ identity, proof }): readonly TrustRefusal[] => {
    if (identity === null || proof !== "unknown") return [];
    const { issuer, subject } = identity;
    const isNamed = known.some((each) => hasSubject(identity, each.subject));
    const detail = `\`${subject}\` of \`${issuer}\``;
    return [{ check: isNamed ? "identity_issuer" : "identity_unknown", detail }];
  });
}

/** The statement, digests and checked signatures of an extension; not yet judged by the policy. */
export interface CheckedExtension {
  readonly statement: Statement;
  /** `sha256:<hex>` of the extension, its files, its signature file and its statement. */
  readonly digests: ReadonlySet<string>;
  /** `sha256:<hex>` of the extension. */
  readonly digest: string;
  readonly signatures: readonly CheckedSignature[];
}

/** The highest sequence trusted under a name, and the digest it had. */
export interface SeenSequence {
  readonly sequence: number;
  readonly digest: string;
}

/**
 * Decides whether an extension is trusted, and by whom. `now` is RFC 3339, milliseconds, UTC; `seen` is undefined where
 * nothing of this kind and name was trusted before. Pure. Throws TrustRefusalError.
 */
export function judgeTrust(
  finding: CheckedExtension,
  policy: TrustPolicy,
  now: string,
  seen: SeenSequence | undefined,
): Trusted {
  refuseRevoked(finding, policy);
  refuseUntimely(finding.statement, now);
  for (const { proof, keyId } of finding.signatures) {
    if (typeof proof === "object" && proof.check !== "key_revoked") {
      throw new TrustRefusalError(proof.check, proof.detail ?? `key \`${keyId}\``);
    }
  }
  const trusted = requireSigners(finding.signatures, policy, now);
  refuseRollback(finding, seen);
  return trusted;
}

function refuseRevoked({ digests }: CheckedExtension, { revoked }: TrustPolicy): void {
  const found = revoked.digests.find((digest) => digests.has(digest));
  if (found !== undefined) throw new TrustRefusalError("digest_revoked", `\`${found}\``);
}

/** Milliseconds that the clock of who signs may be ahead of the one of who verifies. */
const clockTolerance = 60_000;

function refuseUntimely({ issuedAt, expiresAt }: Statement, now: string): void {
  if (Date.parse(issuedAt) - Date.parse(now) > clockTolerance) {
    throw new TrustRefusalError("not_yet_issued", `issued at ${issuedAt}`);
  }
  if (expiresAt !== null && expiresAt <= now) throw new TrustRefusalError("expired", `at ${expiresAt}`);
}

function refuseRollback({ statement, digest }: CheckedExtension, seen: SeenSequence | undefined): void {
  if (seen === undefined || statement.sequence > seen.sequence) return;
  if (statement.sequence < seen.sequence) {
    throw new TrustRefusalError("sequence_lower", `got ${statement.sequence} after ${seen.sequence}`);
  }
  if (digest !== seen.digest) throw new TrustRefusalError("sequence_reused", `${seen.sequence} was \`${seen.digest}\``);
}
