export const evidenceSchema = {
  type: "object",
  description: "What is kept of the actions, and who else keeps it.",
  fields: {
    store_values: {
      type: "boolean",
      default: true,
      description:
        "Keep arguments and answers, encrypted and apart from the chain. False: only what they were is provable.",
    },
    redact_fields: {
      type: "list",
      default: [],
      description:
        "Members of arguments and answers whose values are never kept: `<tool>:<member>`, with `*` as in names.",
      of: { type: "string", format: "field_glob", description: "One pattern." },
    },
  },
} as const;
