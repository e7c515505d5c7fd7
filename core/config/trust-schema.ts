import type { Static } from "@sinclair/typebox";
import { flag, integer, list, object, optional, string } from "./schema.ts";

const identityMembers = {
  issuer: string("Identity provider, exactly as in certificates.", { format: "identity_issuer" }),
  subject: object("Name of the signer at the identity provider: one of these.", {
    equal: optional(string("Exactly this name.", { format: "identity_subject" })),
    prefix: optional(string("Any name with this prefix.", { format: "identity_prefix" })),
  }),
};

const signerSchema = object("One signer.", {
  name: string("Name of the signer in evidence.", { format: "name" }),
  key: optional(string("The public key, as `gateway pack keys new` prints it.", { format: "public_key" })),
  key_file: optional(
    string("File with the public key in PEM, relative to this file's folder. Either this or `key`.", {
      format: "path",
    }),
  ),
  identity: optional(
    object(
      "Identity that a certificate under the trusted root must name. In place of a key, or as an alternative to it.",
      identityMembers,
    ),
  ),
  not_before: optional(
    string("Start of validity: of the key now, of the identity at the time of signing.", { format: "instant" }),
  ),
  not_after: optional(
    string("End of validity: of the key now, whenever it signed; of the identity at the time of signing.", {
      format: "instant",
    }),
  ),
  tighten_only: flag(
    "Extensions trusted through such signers alone may restrict actions but never allow them: for third-party packs.",
    {
      default: false,
    },
  ),
});

export const trustSchema = object("Trusted signers. Where both lists are given, both must be satisfied.", {
  all_of: list("Signers who must all have signed.", signerSchema, {
    default: [],
    whenEmpty: "leave the key out to require no particular signer",
  }),
  any_of: object("Signers of whom a minimum must have signed.", {
    minimum: integer("Number of distinct signers.", { minimum: 1, maximum: 16, default: 1 }),
    signers: list("The signers.", signerSchema, {
      default: [],
      whenEmpty: "leave `any_of` out to require no particular signer",
    }),
  }),
  trusted_root: optional(
    string(
      "Sigstore TrustedRoot in JSON, relative to this file's folder: the certificates, time stamps and logs that prove an `identity`.",
      { format: "path" },
    ),
  ),
  builder: optional(
    object(
      "Identity that must have built every extension with a WASM module, as plugins are: `build.sigstore.json` proves it under the trusted root.",
      identityMembers,
    ),
  ),
  revoked: object("Revocations, which apply to every signer.", {
    digests: list(
      "Digests of extensions, as evidence names them, of their files, or of signed statements.",
      string("One digest.", { format: "digest" }),
      { default: [] },
    ),
    keys: list(
      "Key ids, as `gateway pack inspect` prints them: of signers, certificates or the trusted root.",
      string("One key.", { format: "digest" }),
      { default: [] },
    ),
  }),
});

/** The checked trust policy in its own spelling, every default filled in. */
export type TrustForm = Static<typeof trustSchema>;
