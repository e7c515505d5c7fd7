export const extensionsSchema = {
  type: "object",
  description: "Who vouches for packs and plugins.",
  fields: {
    strict: {
      type: "boolean",
      default: false,
      description:
        "Load nothing that `trust_policy` does not trust. False: what is not trusted is loaded, and marked so in log and evidence.",
    },
    trust_policy: {
      type: "string",
      format: "path",
      default: null,
      description: "File that says whose signatures are trusted, relative to the configuration file's folder.",
    },
  },
} as const;

const signerSchema = {
  type: "object",
  description: "One signer.",
  fields: {
    name: { type: "string", format: "name", required: true, description: "What evidence calls the signer." },
    key: {
      type: "string",
      format: "public_key",
      default: null,
      description: "The public key, as `gateway pack keys new` prints it.",
    },
    key_file: {
      type: "string",
      format: "path",
      default: null,
      description: "File with the public key in PEM, relative to this file's folder. Either this or `key`.",
    },
    identity: {
      type: "object",
      default: null,
      description: "Whom a certificate of the trusted root must name. In place of a key, or beside one: either counts.",
      fields: {
        issuer: {
          type: "string",
          format: "identity_issuer",
          required: true,
          description: "The identity provider, just as certificates spell it.",
        },
        subject: {
          type: "object",
          description: "The name that it gives the signer. One of these.",
          fields: {
            equal: {
              type: "string",
              format: "identity_subject",
              default: null,
              description: "This one, compared character by character.",
            },
            prefix: {
              type: "string",
              format: "identity_prefix",
              default: null,
              description: "Each that begins so.",
            },
          },
        },
      },
    },
    not_before: {
      type: "string",
      format: "instant",
      default: null,
      description: "The key counts from then on, the identity for what it signs from then on.",
    },
    not_after: {
      type: "string",
      format: "instant",
      default: null,
      description:
        "From then on the key does not count, whenever it signed, nor the identity for what it signs from then on.",
    },
    tighten_only: {
      type: "boolean",
      default: false,
      description: "What such signers alone vouch for may forbid, never allow: for packs that others write.",
    },
  },
} as const;

/** `trust.yaml`, a file of its own: whoever may change it decides what the gateway runs. */
export const trustSchema = {
  type: "object",
  description: "Whose signatures are trusted. Where both lists are given, both must be satisfied.",
  fields: {
    all_of: {
      type: "list",
      default: [],
      whenEmpty: "leave the key out to ask for nobody in particular",
      description: "Each of these must have signed.",
      of: signerSchema as typeof signerSchema,
    },
    any_of: {
      type: "object",
      description: "Of these, some must have signed.",
      fields: {
        minimum: {
          type: "integer",
          min: 1,
          max: 16,
          default: 1,
          description: "How many different signers it takes.",
        },
        signers: {
          type: "list",
          default: [],
          whenEmpty: "leave `any_of` out to ask for nobody in particular",
          description: "Who counts.",
          of: signerSchema as typeof signerSchema,
        },
      },
    },
    trusted_root: {
      type: "string",
      format: "path",
      default: null,
      description:
        "Sigstore TrustedRoot in JSON, relative to this file's folder: whose certificates, time stamps and logs prove an `identity`.",
    },
    revoked: {
      type: "object",
      description: "What is trusted no longer, whoever signed it.",
      fields: {
        digests: {
          type: "list",
          default: [],
          description: "Digests of extensions, as evidence names them, of files in them, or of what was signed.",
          of: { type: "string", format: "digest", description: "One digest." },
        },
        keys: {
          type: "list",
          default: [],
          description:
            "Ids of keys, as `gateway pack inspect` prints them: of signers, certificates or those of the trusted root.",
          of: { type: "string", format: "digest", description: "One key." },
        },
      },
    },
  },
} as const;
