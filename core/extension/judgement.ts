import type { TrustPolicy } from "../kernel/trust-policy.ts";
import { type CheckedSignature, requireSigners, type Trusted } from "./quorum.ts";
import { Refusal } from "./refusal.ts";
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
  finding: Finding,
  policy: TrustPolicy,
  now: string,
  seen: SeenSequence | undefined,
): Trusted {
  refuseRevoked(finding, policy);
  refuseUntimely(finding.statement, now);
  for (const { proof, keyId } of finding.signatures) {
    if (typeof proof === "object" && proof.check !== "key_revoked") {
      throw new Refusal(proof.check, proof.detail ?? `key \`${keyId}\``);
    }
  }
  const trusted = requireSigners(finding.signatures, policy, now);
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

function refuseRollback({ statement, digest }: Finding, seen: SeenSequence | undefined): void {
  if (seen === undefined || statement.sequence > seen.sequence) return;
  if (statement.sequence < seen.sequence) {
    throw new Refusal("sequence_lower", `got ${statement.sequence} after ${seen.sequence}`);
  }
  if (digest !== seen.digest) throw new Refusal("sequence_reused", `${seen.sequence} was \`${seen.digest}\``);
}
