/** A public key that an operator trusts, under the name that evidence gives its holder. */
export interface TrustedKey {
  readonly name: string;
  /** `sha256:<hex>` of the key's SubjectPublicKeyInfo. */
  readonly keyId: string;
  /** The key itself: base64 of the DER of its SubjectPublicKeyInfo. */
  readonly spki: string;
  /** RFC 3339, milliseconds, UTC; null: no bound. Within `[notBefore, notAfter)` the key counts. */
  readonly notBefore: string | null;
  readonly notAfter: string | null;
  /** What such signers alone vouch for may forbid, never allow. */
  readonly tightenOnly: boolean;
}

/** Whose signatures make an extension trusted. Names and keys are unique in each list, and one list is not empty. */
export interface TrustPolicy {
  /** All of these must have signed. */
  readonly allOf: readonly TrustedKey[];
  /** Of these, at least so many; null: nobody is asked for. */
  readonly anyOf: { readonly minimum: number; readonly signers: readonly TrustedKey[] } | null;
  readonly revoked: {
    /** `sha256:<hex>` of an extension, of one of its files, of its signature file or of the statement signed. */
    readonly digests: readonly string[];
    /** `keyId` of keys that count no longer. */
    readonly keys: readonly string[];
  };
}
