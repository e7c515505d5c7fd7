import type { TrustedKey, TrustPolicy } from "../kernel/trust-policy.ts";
import { Refusal, type Refused } from "./refusal.ts";
import type { Statement } from "./statement.ts";

/** What was found out about an extension; the signatures are checked, nothing is decided. */
export interface Finding {
  readonly statement: Statement;
  /** `sha256:<hex>` of the extension, its files, its signature file and its statement. */
  readonly digests: ReadonlySet<string>;
  /** `sha256:<hex>` of the extension. */
  readonly digest: string;
  readonly signatures: readonly CheckedSignature[];
}

export interface CheckedSignature {
  readonly keyId: string;
  /** Null: by a key that the policy does not name. */
  readonly valid: boolean | null;
}

/** The highest sequence of a name that was trusted before, and what it was. */
export interface SeenSequence {
  readonly sequence: number;
  readonly digest: string;
}

/** Who vouches for an extension. */
export interface Trusted {
  /** Names out of the policy, in order, each once. */
  readonly signers: readonly string[];
  /** Whether all of them may only tighten. */
  readonly tightenOnly: boolean;
}

/**
 * Decides whether an extension is trusted, and by whom. `now` is RFC 3339,
 * milliseconds, UTC; `seen` undefined where nothing of this kind and name was trusted before. Pure. Throws Refusal.
 */
export function judgeTrust(
  finding: Finding,
  policy: TrustPolicy,
  now: string,
  seen: SeenSequence | undefined,
): Trusted {
  refuseRevoked(finding, policy);
  refuseUntimely(finding.statement, now);
  const bad = finding.signatures.find(({ valid }) => valid === false);
  if (bad !== undefined) throw new Refusal("signature_invalid", `key \`${bad.keyId}\``);
  const trusted = requireSigners(finding, policy, now);
  refuseRollback(finding, seen);
  return trusted;
}

function refuseRevoked({ digests }: Finding, { revoked }: TrustPolicy): void {
  const found = revoked.digests.find((digest) => digests.has(digest));
  if (found !== undefined) throw new Refusal("digest_revoked", `\`${found}\``);
}

function refuseUntimely({ issuedAt, expiresAt }: Statement, now: string): void {
  if (issuedAt > now) throw new Refusal("not_yet_issued", `issued at ${issuedAt}`);
  if (expiresAt !== null && expiresAt <= now) throw new Refusal("expired", `at ${expiresAt}`);
}

function requireSigners({ signatures }: Finding, policy: TrustPolicy, now: string): Trusted {
  const signed = new Set(signatures.filter(({ valid }) => valid === true).map(({ keyId }) => keyId));
  const discounted: Refused[] = [];
  // A signer counts once, however often it signed: a policy lists each key once.
  const counts = (key: TrustedKey): boolean => {
    if (!signed.has(key.keyId)) return false;
    const reason = reasonAgainst(key, policy, now);
    if (reason !== undefined) discounted.push(reason);
    return reason === undefined;
  };
  const all = policy.allOf.filter(counts);
  const any = policy.anyOf?.signers.filter(counts) ?? [];
  const counted = [...all, ...any];
  const minimum = policy.anyOf?.minimum ?? 0;
  if (all.length === policy.allOf.length && any.length >= minimum && counted.length > 0) {
    const signers = [...new Set(counted.map(({ name }) => name))].sort();
    return { signers, tightenOnly: counted.every(({ tightenOnly }) => tightenOnly) };
  }
  const [first] = discounted;
  if (first !== undefined) throw new Refusal(first.check, first.detail);
  const absent = policy.allOf.filter(({ keyId }) => !signed.has(keyId)).map(({ name }) => `\`${name}\` did not sign`);
  const few = any.length < minimum ? [`${any.length} of the ${minimum} that \`any_of\` asks for`] : [];
  throw new Refusal("signers_missing", [...absent, ...few].join(", "));
}

/** There is no trusted time of signing, so a key counts by the time at which it is asked. */
function reasonAgainst(
  { name, keyId, notBefore, notAfter }: TrustedKey,
  policy: TrustPolicy,
  now: string,
): Refused | undefined {
  if (policy.revoked.keys.includes(keyId)) return { check: "key_revoked", detail: `\`${name}\`` };
  if (notBefore !== null && now < notBefore) return { check: "key_not_yet_valid", detail: `\`${name}\`, ${notBefore}` };
  if (notAfter !== null && now >= notAfter) return { check: "key_expired", detail: `\`${name}\`, ${notAfter}` };
  return undefined;
}

function refuseRollback({ statement, digest }: Finding, seen: SeenSequence | undefined): void {
  if (seen === undefined || statement.sequence > seen.sequence) return;
  if (statement.sequence < seen.sequence) {
    throw new Refusal("sequence_lower", `got ${statement.sequence} after ${seen.sequence}`);
  }
  if (digest !== seen.digest) throw new Refusal("sequence_reused", `${seen.sequence} was \`${seen.digest}\``);
}
