import type { JsonObject } from "../action/json.ts";

/** A public key that an operator trusts. */
export interface TrustedKey {
  /** `sha256:<hex>` of the key's SubjectPublicKeyInfo. */
  readonly keyId: string;
  /** The key itself: base64 of the DER of its SubjectPublicKeyInfo. */
  readonly spki: string;
}

/** An identity that a certificate may name. */
export interface TrustedIdentity {
  /** The identity provider, as the certificate spells it. */
  readonly issuer: string;
  readonly subject: TrustedSubject;
}

/** A prefix is a URL in its one spelling, its host included, and ends in `/`. */
export type TrustedSubject =
  | { readonly kind: "uri" | "email"; readonly equal: string }
  | { readonly kind: "uri"; readonly prefix: string };

/** Somebody whom an operator trusts, known by a key, by an identity, or by either. */
export interface TrustedSigner {
  /** Name of the signer in evidence. */
  readonly name: string;
  readonly key: TrustedKey | null;
  /** Null, or the policy has a `trustedRoot`. */
  readonly identity: TrustedIdentity | null;
  /** RFC 3339, milliseconds, UTC; null: no bound. Applies to a key now, to an identity when it signed; `notAfter` excluded. */
  readonly notBefore: string | null;
  readonly notAfter: string | null;
  /** True where extensions trusted through such signers alone may restrict actions but never allow them. */
  readonly tightenOnly: boolean;
}

/**
 * The signers whose signatures make an extension trusted. At least one list is not empty; in each, no two signers share a
 * name, a key or an identity.
 */
export interface TrustPolicy {
  /** All of these must have signed. */
  readonly allOf: readonly TrustedSigner[];
  /** A minimum of distinct signers out of a list; null: no such requirement. */
  readonly anyOf: { readonly minimum: number; readonly signers: readonly TrustedSigner[] } | null;
  /** A Sigstore TrustedRoot: the authorities that vouch for identities and times, and their logs. Readable. */
  readonly trustedRoot: JsonObject | null;
  /** The identity that must have built what has a WASM module; null, or the policy has a `trustedRoot`. */
  readonly builder: TrustedIdentity | null;
  readonly revoked: {
    /** `sha256:<hex>` of an extension, of one of its files, of its signature file or of the statement signed. */
    readonly digests: readonly string[];
    /** `keyId` of keys that count no longer: of signers, of their certificates, or of the trusted root. */
    readonly keys: readonly string[];
  };
}
