import type { Static } from "@sinclair/typebox";
import { flag, integer, list, object, optional, text } from "./schema.ts";

const signerSchema = object("One signer.", {
  name: text("What evidence calls the signer.", { format: "name" }),
  key: optional(text("The public key, as `gateway pack keys new` prints it.", { format: "public_key" })),
  key_file: optional(
    text("File with the public key in PEM, relative to this file's folder. Either this or `key`.", { format: "path" }),
  ),
  identity: optional(
    object("Whom a certificate of the trusted root must name. In place of a key, or beside one: either counts.", {
      issuer: text("The identity provider, just as certificates spell it.", { format: "identity_issuer" }),
      subject: object("The name that it gives the signer. One of these.", {
        equal: optional(text("This one, compared character by character.", { format: "identity_subject" })),
        prefix: optional(text("Each that begins so.", { format: "identity_prefix" })),
      }),
    }),
  ),
  not_before: optional(
    text("The key counts from then on, the identity for what it signs from then on.", { format: "instant" }),
  ),
  not_after: optional(
    text("From then on the key does not count, whenever it signed, nor the identity for what it signs from then on.", {
      format: "instant",
    }),
  ),
  tighten_only: flag("What such signers alone vouch for may forbid, never allow: for packs that others write.", {
    default: false,
  }),
});

export const trustSchema = object("Whose signatures are trusted. Where both lists are given, both must be satisfied.", {
  all_of: list("Each of these must have signed.", signerSchema, {
    default: [],
    whenEmpty: "leave the key out to ask for nobody in particular",
  }),
  any_of: object("Of these, some must have signed.", {
    minimum: integer("How many different signers it takes.", { minimum: 1, maximum: 16, default: 1 }),
    signers: list("Who counts.", signerSchema, {
      default: [],
      whenEmpty: "leave `any_of` out to ask for nobody in particular",
    }),
  }),
  trusted_root: optional(
    text(
      "Sigstore TrustedRoot in JSON, relative to this file's folder: whose certificates, time stamps and logs prove an `identity`.",
      { format: "path" },
    ),
  ),
  revoked: object("What is trusted no longer, whoever signed it.", {
    digests: list(
      "Digests of extensions, as evidence names them, of files in them, or of what was signed.",
      text("One digest.", { format: "digest" }),
      { default: [] },
    ),
    keys: list(
      "Ids of keys, as `gateway pack inspect` prints them: of signers, certificates or those of the trusted root.",
      text("One key.", { format: "digest" }),
      { default: [] },
    ),
  }),
});

/** The checked trust policy in its own spelling, every default filled in. */
export type TrustForm = Static<typeof trustSchema>;
