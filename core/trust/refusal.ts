import { type ErrorOptions, GatewayError } from "../action/error.ts";

/** Every check that can fail, with its sentence. Closed: evidence, log and command line use these names only. */
const trustChecks = {
  unsigned: "expected a signature file, got none; `gateway pack sign`, `plugin sign` and `engine sign` write one",
  bundle_malformed: "expected lines of Sigstore bundles v0.3 with a DSSE envelope and a public key or a certificate",
  payload_type: "expected a DSSE payload of type `application/vnd.in-toto+json`",
  statement_malformed: "expected an in-toto Statement v1 in canonical JSON",
  statement_differs: "expected all signers to have signed the same statement",
  predicate_type: "expected a statement about an extension, version 1",
  certificate_malformed: "expected a certificate in DER, each extension once, of at most 16384 bytes",
  identity_unreadable: "expected a certificate that names one issuer and one URI or e-mail address in printable ASCII",
  kind_mismatch: "expected a statement about this kind of extension",
  file_unlisted: "expected every file to be signed",
  file_missing: "expected every signed file to be there",
  file_altered: "expected every file as it was signed",
  digest_revoked: "expected a content that is not revoked",
  not_yet_issued: "expected a statement issued in the past, or at most a minute ahead of this clock",
  expired: "expected a statement that has not expired",
  signature_invalid: "expected signatures of trusted keys to be valid",
  certificate_usage: "expected a certificate for signing code, no authority's, without a limit that is not understood",
  certificate_untrusted:
    "expected a certificate of an authority that the trusted root holds valid at the time of signing",
  certificate_expired: "expected a certificate that was valid at the time of signing",
  time_unproven: "expected a proof of the time of signing, got none",
  timestamp_invalid: "expected time stamps of this signature, by authorities of the trusted root",
  log_entry_missing: "expected an entry of this signature in a log of the trusted root, got none",
  log_entry_invalid: "expected entries of this signature, by logs of the trusted root",
  proof_malformed: "expected proofs of identity and time that can be read",
  identity_issuer: "expected the issuer that the trust policy names for this identity",
  identity_unknown: "expected an identity that the trust policy names",
  key_revoked: "expected no key that is revoked, of the signer or of who vouches for the signer",
  key_not_yet_valid: "expected a signer who counts already",
  key_expired: "expected a signer who counts still",
  signers_missing: "expected signatures of the signers that the trust policy asks for",
  build_malformed:
    "expected an in-toto Statement v1 with the digests of what was built, in `build.sigstore.json` a Sigstore bundle of SLSA provenance v1 with a certificate",
  build_unproven: "expected `build.sigstore.json`, by which the builder of the trust policy vouches for the modules",
  build_of_another: "expected the build statement to be about the modules of this extension",
  sequence_lower: "expected no sequence below one that was loaded before",
  sequence_reused: "expected one content for one sequence",
} as const;

export type TrustCheck = keyof typeof trustChecks;

/** A failed check; `detail` names the file, key or time, with input in backticks. */
export interface TrustRefusal {
  readonly check: TrustCheck;
  readonly detail: string | undefined;
}

/** Signals a failed check inside the verifier; never leaves this folder. */
export class TrustRefusalError extends Error implements TrustRefusal {
  readonly check: TrustCheck;
  readonly detail: string | undefined;

  constructor(check: TrustCheck, detail?: string) {
    super(check);
    this.name = "Refusal";
    this.check = check;
    this.detail = detail;
  }
}

/** `check: what was expected (detail)`. */
export function describeRefusal({ check, detail }: TrustRefusal): string {
  return `${check}: ${trustChecks[check]}${detail === undefined ? "" : ` (${detail})`}`;
}

/** EXTENSION_REFUSED for one folder; `data.check` names the check. */
export function trustError(folder: string, refused: TrustRefusal, options: ErrorOptions = {}): GatewayError {
  const data = { check: refused.check };
  return new GatewayError("EXTENSION_REFUSED", `\`${folder}\`: ${describeRefusal(refused)}`, { ...options, data });
}
