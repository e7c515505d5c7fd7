import type { Bundle } from "@sigstore/bundle";
import { TrustedRoot } from "@sigstore/protobuf-specs";
import {
  type SignedEntity,
  type TrustMaterial,
  toSignedEntity,
  toTrustMaterial,
  VerificationError,
  Verifier,
} from "@sigstore/verify";
import { contentDigest } from "../kernel/digest.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { SignerCertificate } from "./certificate.ts";
import type { Refused, TrustCheck } from "./refusal.ts";

/** Times at which a signature was there (RFC 3339, milliseconds, UTC; in order, at least one), each proven. */
export type SigningTimes = readonly [string, ...string[]];

/**
 * Proves that the holder of a certificate signed: an authority of the trusted root issued it, it was valid at each time
 * that is proven, and there is such a time. What the root names is asked for: with logs an entry, with certificate logs
 * the receipt of one. Nothing that rests on a revoked key (`sha256:<hex>` of its SubjectPublicKeyInfo) counts.
 */
export function proveIdentity(
  bundle: Bundle,
  certificate: SignerCertificate,
  trustedRoot: JsonObject,
  revokedKeys: readonly string[],
): SigningTimes | Refused {
  const refuse = (check: TrustCheck): Refused => ({ check, detail: `\`${certificate.identity.subject}\`` });
  if (!certificate.signsCode) return refuse("certificate_usage");
  try {
    const root = toTrustMaterial(TrustedRoot.fromJSON(trustedRoot));
    const entity = toSignedEntity(bundle);
    const dates = claimedTimes(entity);
    const [first, ...others] = dates.map((date) => date.toISOString()).toSorted();
    if (first === undefined) return refuse("time_unproven");
    const standing = withoutKeys(root, new Set(revokedKeys));
    if (verify(entity, standing, root, dates) === undefined) return [first, ...others];
    const fault = verify(entity, root, root, dates) ?? "key_revoked";
    const expired = fault === "certificate_untrusted" && !dates.every((date) => certificate.parsed.validForDate(date));
    return refuse(expired ? "certificate_expired" : fault);
  } catch {
    // Whatever the library trips over in bytes that anybody can write.
    return refuse("proof_malformed");
  }
}

/** The times that the verifier would take up; none is proven before it has. */
function claimedTimes({ timestamps }: SignedEntity): readonly Date[] {
  return timestamps.flatMap((each) => {
    if (each.$case === "timestamp-authority") return [each.timestamp.signingTime];
    const { inclusionPromise, integratedTime } = each.tlogEntry;
    return inclusionPromise === undefined ? [] : [new Date(Number(integratedTime) * 1000)];
  });
}

const checks: Partial<Readonly<Record<VerificationError["code"], TrustCheck>>> = {
  TIMESTAMP_ERROR: "timestamp_invalid",
  CERTIFICATE_ERROR: "certificate_untrusted",
  TLOG_ERROR: "log_entry_missing",
  TLOG_INCLUSION_PROOF_ERROR: "log_entry_invalid",
  TLOG_INCLUSION_PROMISE_ERROR: "log_entry_invalid",
  TLOG_MISSING_INCLUSION_ERROR: "log_entry_invalid",
  TLOG_BODY_ERROR: "log_entry_invalid",
  SIGNATURE_ERROR: "signature_invalid",
};

/** Undefined where all holds. What `root` names is asked for, what `standing` names can give it. */
function verify(
  entity: SignedEntity,
  standing: TrustMaterial,
  root: TrustMaterial,
  dates: readonly Date[],
): TrustCheck | undefined {
  const thresholds = {
    timestampThreshold: 1,
    tlogThreshold: root.tlogs.length > 0 ? 1 : 0,
    ctlogThreshold: root.ctlogs.length > 0 ? 1 : 0,
  };
  // The library holds a log's key to its validity only where the entry has a time of its own.
  const tlogs = standing.tlogs.filter(({ validFor }) =>
    dates.every((date) => validFor.start <= date && date <= validFor.end),
  );
  try {
    new Verifier({ ...standing, tlogs }, thresholds).verify(entity);
    return undefined;
  } catch (cause) {
    const code = cause instanceof VerificationError ? cause.code : undefined;
    return (code === undefined ? undefined : checks[code]) ?? "proof_malformed";
  }
}

function withoutKeys(material: TrustMaterial, revoked: ReadonlySet<string>): TrustMaterial {
  const stands = (spki: Buffer): boolean => !revoked.has(contentDigest(spki));
  const authority = ({ certChain }: TrustMaterial["certificateAuthorities"][number]): boolean =>
    certChain.every(({ publicKey }) => stands(publicKey));
  const log = ({ publicKey }: TrustMaterial["tlogs"][number]): boolean =>
    stands(publicKey.export({ format: "der", type: "spki" }));
  return {
    ...material,
    certificateAuthorities: material.certificateAuthorities.filter(authority),
    timestampAuthorities: material.timestampAuthorities.filter(authority),
    tlogs: material.tlogs.filter(log),
    ctlogs: material.ctlogs.filter(log),
  };
}
