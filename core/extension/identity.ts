import type { ASN1Obj, X509Certificate } from "@sigstore/core";
import type { TrustedIdentity } from "../kernel/trust-policy.ts";
import { Refusal } from "./refusal.ts";

/** Whom a certificate names, and who said so. Both are printable ASCII without backticks, at most 1024 characters. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly kind: "uri" | "email";
}

const subjectAltName = "2.5.29.17";
/** The issuer of the identity, as Fulcio writes it: bare text in the first, a DER UTF8String in the second. */
const bareIssuer = "1.3.6.1.4.1.57264.1.1";
const wrappedIssuer = "1.3.6.1.4.1.57264.1.8";
const utf8String = 0x0c;
const nameTags: ReadonlyMap<number, Identity["kind"]> = new Map([
  [0x81, "email"],
  [0x86, "uri"],
]);
const plainText = /^[\x21-\x5f\x61-\x7e]{1,1024}$/;

/**
 * The one identity that a certificate gives its holder. Refuses a certificate that names none or several, one of another
 * kind than URI and e-mail address, or two issuers: readers could differ over which one counts.
 */
export function readIdentity(certificate: X509Certificate): Identity {
  const name = only(only(certificate.extension(subjectAltName)?.valueObj.subs)?.subs);
  const kind = name === undefined ? undefined : nameTags.get(name.tag.toDER());
  const subject = plain(name?.value);
  const issuer = readIssuer(certificate);
  if (kind === undefined || subject === undefined || issuer === undefined) throw new Refusal("identity_unreadable");
  return { issuer, subject, kind };
}

/** Whether the policy means this identity. Compares texts, never by a pattern. */
export function isOf(identity: Identity, { issuer, subject }: TrustedIdentity): boolean {
  return identity.issuer === issuer && hasSubject(identity, subject);
}

/** The same, whoever the issuer is. */
export function hasSubject({ kind, subject }: Identity, trusted: TrustedIdentity["subject"]): boolean {
  if (kind !== trusted.kind) return false;
  return "equal" in trusted ? subject === trusted.equal : subject.startsWith(trusted.prefix) && isOneSpelling(subject);
}

/** `/team/../other` begins with `/team/` and is elsewhere. */
function isOneSpelling(uri: string): boolean {
  return URL.canParse(uri) && new URL(uri).href === uri;
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

/** What is told as it is, in backticks: printable ASCII without white space. */
export function isPlainText(value: unknown): value is string {
  return typeof value === "string" && plainText.test(value);
}

function only<T>(items: readonly T[] | undefined): T | undefined {
  return items?.length === 1 ? items[0] : undefined;
}
