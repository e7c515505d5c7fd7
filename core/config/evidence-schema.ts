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
    store_labels: {
      type: "boolean",
      default: true,
      description: "Keep the labels that clients give their sessions, in the clear. False: a session has its id alone.",
    },
    redact_fields: {
      type: "list",
      default: [],
      description:
        "Members of arguments and answers whose values are never kept: `<tool>:<member>`, with `*` as in names.",
      of: { type: "string", format: "field_glob", description: "One pattern." },
    },
    witnesses: {
      type: "list",
      default: [],
      description: "Who is told where each chain stands, so that none can be cut, replaced or removed unseen.",
      of: {
        type: "object",
        description: "One witness.",
        fields: {
          name: { type: "string", format: "name", required: true, description: "Name of the witness. Unique." },
          type: {
            type: "choice",
            values: ["file", "http", "git"],
            required: true,
            description: "`file`: a folder on other storage. `http`: a server that keeps notes. `git`: a repository.",
          },
          path: {
            type: "string",
            format: "path",
            required: true,
            only: { key: "type", values: ["file"] },
            description: "The folder, relative to the configuration file's folder. Made where there is none.",
          },
          url: {
            type: "string",
            format: "url",
            required: true,
            only: { key: "type", values: ["http"] },
            description: "`POST <url>/<chain>` keeps a note, `GET` answers the latest one, or 404.",
          },
          headers_env: {
            type: "map",
            key: "header_name",
            default: {},
            only: { key: "type", values: ["http"] },
            description: "Headers whose values are secret.",
            of: {
              type: "string",
              format: "variable",
              required: true,
              description: "Environment variable that holds the value, whole: `Bearer …` and all.",
            },
          },
          repository: {
            type: "string",
            format: "path",
            required: true,
            only: { key: "type", values: ["git"] },
            description:
              "The repository, relative to the configuration file's folder. Notes go to its branch `evidence`.",
          },
          interval_ms: {
            type: "integer",
            min: 1_000,
            max: 86_400_000,
            default: 60_000,
            description: "Time from one note to the next. What happens in between, the witness cannot vouch for.",
          },
        },
      },
    },
    checkpoint_heartbeat_ms: {
      type: "integer",
      min: 0,
      max: 604_800_000,
      default: 3_600_000,
      description: "A chain without a record for so long gets a heartbeat. 0: none does.",
    },
  },
} as const;
