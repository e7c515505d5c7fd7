import { canonicalJson } from "../action/canonical-json.ts";
import type { TrustedSigner, TrustPolicy } from "../config/trust-policy.ts";
import { hasSubject, type Identity, isOf } from "./identity.ts";
import { type TrustRefusal, TrustRefusalError } from "./refusal.ts";
import type { Statement } from "./statement.ts";
import type { ProvenIdentity } from "./verified-extension.ts";

/** One bundle, its signature checked; nothing is decided. */
export interface CheckedSignature {
  /** The signer's key, or the one of the certificate. */
  readonly keyId: string;
  /** Whom the certificate names; null: no certificate. */
  readonly identity: Identity | null;
  /** Proven times of signing (RFC 3339, milliseconds, UTC; in order); none without a certificate. */
  readonly times: readonly string[];
  /** `unknown`: by nobody whom the policy names, and not looked into. */
  readonly proof: "valid" | "unknown" | TrustRefusal;
}

/** Who vouches for an extension. */
interface Trusted {
  /** Names out of the policy, in order, each once. */
  readonly signers: readonly string[];
  /** Those of them who signed by an identity, in the order of their names, and of the earliest time for each. */
  readonly identities: readonly ProvenIdentity[];
  /** Whether all of them may only tighten. */
  readonly tightenOnly: boolean;
}

/** The signers that the policy asks for, out of signatures of which none is bad. Throws Refusal where they are too few. */
function requireSigners(signatures: readonly CheckedSignature[], policy: TrustPolicy, now: string): Trusted {
  const discounted: TrustRefusal[] = [];
  const counted: Counted[] = [];
  // A signer counts once, however often and however the signer signed: a policy lists each once.
  const counts = (signer: TrustedSigner): boolean => {
    const own = signatures.filter((signature) => isBy(signature, signer));
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
  const [first] = [...discounted, ...strangers(signatures, policy)];
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

/** Whether the policy means this signer; a certificate counts by whom it names, not by its key. */
export function isBy(
  { keyId, identity }: Pick<CheckedSignature, "keyId" | "identity">,
  signer: TrustedSigner,
): boolean {
  if (identity === null) return signer.key?.keyId === keyId;
  return signer.identity !== null && isOf(identity, signer.identity);
}

/** There is no trusted time of a key's signature, so a key counts by the time at which it is asked. */
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

/** Identities that the policy does not name: where somebody is missing, what they are says most. */
function strangers(signatures: readonly CheckedSignature[], { allOf, anyOf }: TrustPolicy): readonly TrustRefusal[] {
  const known = [...allOf, ...(anyOf?.signers ?? [])].flatMap(({ identity }) => identity ?? []);
  return signatures.flatMap(({ identity, proof }): readonly TrustRefusal[] => {
    if (identity === null || proof !== "unknown") return [];
    const { issuer, subject } = identity;
    const isNamed = known.some((each) => hasSubject(identity, each.subject));
    const detail = `\`${subject}\` of \`${issuer}\``;
    return [{ check: isNamed ? "identity_issuer" : "identity_unknown", detail }];
  });
}

/** What was found out about an extension; the signatures are checked, nothing is decided. */
export interface CheckedExtension {
  readonly statement: Statement;
  /** `sha256:<hex>` of the extension, its files, its signature file and its statement. */
  readonly digests: ReadonlySet<string>;
  /** `sha256:<hex>` of the extension. */
  readonly digest: string;
  readonly signatures: readonly CheckedSignature[];
}

/** The highest sequence of a name that was trusted before, and what it was. */
export interface SeenSequence {
  readonly sequence: number;
  readonly digest: string;
}

/**
 * Decides whether an extension is trusted, and by whom. `now` is RFC 3339,
 * milliseconds, UTC; `seen` undefined where nothing of this kind and name was trusted before. Pure. Throws Refusal.
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

function refuseUntimely({ issuedAt, expiresAt }: Statement, now: string): void {
  if (issuedAt > now) throw new TrustRefusalError("not_yet_issued", `issued at ${issuedAt}`);
  if (expiresAt !== null && expiresAt <= now) throw new TrustRefusalError("expired", `at ${expiresAt}`);
}

function refuseRollback({ statement, digest }: CheckedExtension, seen: SeenSequence | undefined): void {
  if (seen === undefined || statement.sequence > seen.sequence) return;
  if (statement.sequence < seen.sequence) {
    throw new TrustRefusalError("sequence_lower", `got ${statement.sequence} after ${seen.sequence}`);
  }
  if (digest !== seen.digest) throw new TrustRefusalError("sequence_reused", `${seen.sequence} was \`${seen.digest}\``);
}
