import { X509Certificate as Certificate } from "node:crypto";
import type { Bundle } from "@sigstore/bundle";
import { type ASN1Obj, X509Certificate } from "@sigstore/core";
import { TrustedRoot } from "@sigstore/protobuf-specs";
import {
  type SignedEntity,
  type TrustMaterial,
  toSignedEntity,
  toTrustMaterial,
  VerificationError,
  Verifier,
} from "@sigstore/verify";
import { contentDigest } from "../action/canonical-json.ts";
import type { JsonObject } from "../action/json.ts";
import { parsedUrl } from "../action/parsed-url.ts";
import type { TrustedIdentity } from "../config/trust-policy.ts";
import { type TrustCheck, type TrustRefusal, TrustRefusalError } from "./refusal.ts";

/**
 * The subject of a certificate and the issuer that vouches for it. Both are printable ASCII without backticks, at most
 * 1024 characters.
 */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly kind: "uri" | "email";
}

const subjectAltName = "2.5.29.17";
/** The issuer extensions of Fulcio: plain text in the first, a DER UTF8String in the second. */
const bareIssuer = "1.3.6.1.4.1.57264.1.1";
const wrappedIssuer = "1.3.6.1.4.1.57264.1.8";
const utf8String = 0x0c;
const nameTags: ReadonlyMap<number, Identity["kind"]> = new Map([
  [0x81, "email"],
  [0x86, "uri"],
]);
const plainText = /^[\x21-\x5f\x61-\x7e]{1,1024}$/;

/**
 * Reads the one identity of a certificate. Refuses a certificate with none or several, with another kind than URI and
 * e-mail address, or with two issuers: readers could disagree about which one counts.
 */
function readIdentity(certificate: X509Certificate): Identity {
  const name = only(only(certificate.extension(subjectAltName)?.valueObj.subs)?.subs);
  const kind = name === undefined ? undefined : nameTags.get(name.tag.toDER());
  const subject = plain(name?.value);
  const issuer = readIssuer(certificate);
  if (kind === undefined || subject === undefined || issuer === undefined)
    throw new TrustRefusalError("identity_unreadable");
  return { issuer, subject, kind };
}

/** Returns true if the policy names this identity. Compares text, never by a pattern. */
export function matchesIdentity(identity: Identity, { issuer, subject }: TrustedIdentity): boolean {
  return identity.issuer === issuer && hasSubject(identity, subject);
}

/** Compares the subject only. */
export function hasSubject({ kind, subject }: Identity, trusted: TrustedIdentity["subject"]): boolean {
  if (kind !== trusted.kind) return false;
  return "equal" in trusted ? subject === trusted.equal : subject.startsWith(trusted.prefix) && isOneSpelling(subject);
}

/** Refuses URIs with a second spelling: `/team/../other` begins with `/team/` and is elsewhere. */
function isOneSpelling(uri: string): boolean {
  return parsedUrl(uri)?.href === uri;
}

function readIssuer(certificate: X509Certificate): string | undefined {
  const [bare, wrapped] = [certificate.extension(bareIssuer), certificate.extension(wrappedIssuer)];
  const texts = new Set<string | undefined>();
  if (bare !== undefined) texts.add(plain(bare.value));
  if (wrapped !== undefined) texts.add(unwrap(wrapped.valueObj));
  return only([...texts]);
}

function unwrap({ subs }: ASN1Obj): string | undefined {
  const text = only(subs);
  return text?.tag.toDER() === utf8String ? plain(text.value) : undefined;
}

function plain(value: Buffer | undefined): string | undefined {
  const text = value?.toString("latin1");
  return isPlainText(text) ? text : undefined;
}

/** Returns true for text that messages may quote unescaped: printable ASCII without white space. */
export function isPlainText(value: unknown): value is string {
  return typeof value === "string" && plainText.test(value);
}

function only<T>(items: readonly T[] | undefined): T | undefined {
  return items?.length === 1 ? items[0] : undefined;
}

/** Proven times of signing (RFC 3339, milliseconds, UTC; in order, at least one). */
type SigningTimes = readonly [string, ...string[]];

/**
 * Proves that the holder of a certificate signed: an authority of the trusted root issued it, it was valid at each
 * proven time, and there is such a time. Requires what the root names: where it has logs, a log entry; where it has
 * certificate logs, a receipt of one. Proofs that depend on a revoked key (`sha256:<hex>` of its SubjectPublicKeyInfo)
 * do not count.
 */
export function proveIdentity(
  bundle: Bundle,
  certificate: SignerCertificate,
  trustedRoot: JsonObject,
  revokedKeys: readonly string[],
): SigningTimes | TrustRefusal {
  const refuse = (check: TrustCheck): TrustRefusal => ({ check, detail: `\`${certificate.identity.subject}\`` });
  if (!certificate.signsCode) return refuse("certificate_usage");
  try {
    const root = toTrustMaterial(TrustedRoot.fromJSON(trustedRoot));
    const entity = toSignedEntity(bundle);
    const dates = claimedTimes(entity);
    const [first, ...others] = dates.map((date) => date.toISOString()).toSorted();
    if (first === undefined) return refuse("time_unproven");
    const usable = withoutKeys(root, new Set(revokedKeys));
    if (verify(entity, usable, root, dates) === undefined) return [first, ...others];
    const fault = verify(entity, root, root, dates) ?? "key_revoked";
    const expired = fault === "certificate_untrusted" && !dates.every((date) => certificate.parsed.validForDate(date));
    return refuse(expired ? "certificate_expired" : fault);
  } catch {
    // Any error of the library: anybody can write these bytes.
    return refuse("proof_malformed");
  }
}

/** The times that the bundle claims; unproven until the verifier has checked them. */
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

/** Verifies with the keys of `usable`, by the thresholds of `root`. Returns the failed check, or undefined. */
function verify(
  entity: SignedEntity,
  usable: TrustMaterial,
  root: TrustMaterial,
  dates: readonly Date[],
): TrustCheck | undefined {
  const thresholds = {
    timestampThreshold: 1,
    tlogThreshold: root.tlogs.length > 0 ? 1 : 0,
    ctlogThreshold: root.ctlogs.length > 0 ? 1 : 0,
  };
  // The library checks the validity of a log's key only where the entry has a time of its own.
  const tlogs = usable.tlogs.filter(({ validFor }) =>
    dates.every((date) => validFor.start <= date && date <= validFor.end),
  );
  try {
    new Verifier({ ...usable, tlogs }, thresholds).verify(entity);
    return undefined;
  } catch (cause) {
    const code = cause instanceof VerificationError ? cause.code : undefined;
    return (code === undefined ? undefined : checks[code]) ?? "proof_malformed";
  }
}

function withoutKeys(material: TrustMaterial, revoked: ReadonlySet<string>): TrustMaterial {
  const isUsable = (spki: Buffer): boolean => !revoked.has(contentDigest(spki));
  const authority = ({ certChain }: TrustMaterial["certificateAuthorities"][number]): boolean =>
    certChain.every(({ publicKey }) => isUsable(publicKey));
  const log = ({ publicKey }: TrustMaterial["tlogs"][number]): boolean =>
    isUsable(publicKey.export({ format: "der", type: "spki" }));
  return {
    ...material,
    certificateAuthorities: material.certificateAuthorities.filter(authority),
    timestampAuthorities: material.timestampAuthorities.filter(authority),
    tlogs: material.tlogs.filter(log),
    ctlogs: material.ctlogs.filter(log),
  };
}

/** A parsed certificate of a signer; not verified yet. */
export interface SignerCertificate {
  readonly identity: Identity;
  /** `sha256:<hex>` of the SubjectPublicKeyInfo. */
  readonly keyId: string;
  readonly parsed: X509Certificate;
  /** True for a code-signing certificate that is no authority and has no critical extension unknown here. */
  readonly signsCode: boolean;
}

const maxBytes = 16_384;
const codeSigning = "1.3.6.1.5.5.7.3.3";
/** The critical extensions that are read: key usage, names, basic constraints, extended key usage. */
const readWhereCritical: ReadonlySet<string> = new Set(["2.5.29.15", "2.5.29.17", "2.5.29.19", "2.5.29.37"]);

/** Reads DER of at most 16 KiB that two parsers read as the same certificate, with each extension given once. */
export function readCertificate(der: Buffer): SignerCertificate {
  const read = der.length > maxBytes ? undefined : parse(der);
  if (read === undefined) throw new TrustRefusalError("certificate_malformed");
  return { ...read, identity: readIdentity(read.parsed) };
}

function parse(der: Buffer): Omit<SignerCertificate, "identity"> | undefined {
  try {
    const parsed = X509Certificate.parse(Buffer.from(der));
    const { raw, ca, keyUsage } = new Certificate(der);
    const names = parsed.extensions.map(({ subs }) => subs[0]?.toOID());
    const isOne = parsed.root.toDER().equals(der) && raw.equals(der) && new Set(names).size === names.length;
    const signsCode = !ca && keyUsage?.includes(codeSigning) === true && !hasUnreadLimit(parsed);
    return isOne ? { keyId: contentDigest(parsed.publicKey), parsed, signsCode } : undefined;
  } catch {
    return undefined;
  }
}

function hasUnreadLimit({ extensions }: X509Certificate): boolean {
  return extensions.some(
    ({ subs: [name, , value] }) => value !== undefined && !readWhereCritical.has(name?.toOID() ?? ""),
  );
}
