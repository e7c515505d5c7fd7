import { X509Certificate as Certificate } from "node:crypto";
import { X509Certificate } from "@sigstore/core";
import { contentDigest } from "../kernel/digest.ts";
import { type Identity, readIdentity } from "./identity.ts";
import { Refusal } from "./refusal.ts";

/** The certificate of a signer, read; nobody has vouched for it yet. */
export interface SignerCertificate {
  readonly identity: Identity;
  /** `sha256:<hex>` of the SubjectPublicKeyInfo. */
  readonly keyId: string;
  readonly parsed: X509Certificate;
  /** Whether it says that its holder may sign code, is no authority, and has no limit that nobody here reads. */
  readonly signsCode: boolean;
}

const mostBytes = 16_384;
const codeSigning = "1.3.6.1.5.5.7.3.3";
/** Key usage, names, basic constraints, extended key usage. */
const readWhereCritical: ReadonlySet<string> = new Set(["2.5.29.15", "2.5.29.17", "2.5.29.19", "2.5.29.37"]);

/** Reads DER of at most 16 KiB that two parsers take for one certificate, each extension given once. */
export function readCertificate(der: Buffer): SignerCertificate {
  const read = der.length > mostBytes ? undefined : parse(der);
  if (read === undefined) throw new Refusal("certificate_malformed");
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
