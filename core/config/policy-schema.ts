export const approvalSchema = {
  type: "object",
  description: "Review of held actions, and who is told of them.",
  fields: {
    review_seconds: {
      type: "integer",
      min: 1,
      max: 604_800,
      default: 1_800,
      description: "Time to review a held action. Then it expires and has to be attempted again.",
    },
    use_seconds: {
      type: "integer",
      min: 1,
      max: 86_400,
      default: 900,
      description: "Time to use an approval once it is given.",
    },
    max_pending: {
      type: "integer",
      min: 1,
      max: 100_000,
      default: 1_000,
      description: "Approvals of a tenant that are pending or approved. One more is refused.",
    },
    max_held_bytes: {
      type: "integer",
      min: 1_024,
      max: 1_073_741_824,
      default: 67_108_864,
      description: "Held actions of a tenant together, arguments and all. What does not fit is refused.",
    },
    allow_self_review: {
      type: "boolean",
      default: false,
      description: "Whether whoever asked for an action may approve it.",
    },
    allow_break_glass: {
      type: "boolean",
      default: false,
      description: "Whether an `admin` may approve alone and at once, and owes a post-mortem.",
    },
    hold_seconds: {
      type: "integer",
      min: 0,
      max: 45,
      default: 0,
      description: "How long a held tool call waits for its review before it is answered. 0: it is answered at once.",
    },
    review_url: {
      type: "string",
      format: "url",
      default: null,
      description:
        "Page where people review: clients that can open a URL are asked to. `{id}` stands for the approval's id.",
    },
    webhooks: {
      type: "list",
      default: [],
      description:
        "Who is told, by signed HTTP requests as Standard Webhooks describes them. Being told grants nothing.",
      of: {
        type: "object",
        description: "One receiver.",
        fields: {
          name: { type: "string", format: "name", required: true, description: "Name of the webhook. Unique." },
          tenant: {
            type: "string",
            format: "name",
            required: true,
            description: "The tenant whose approvals it hears of. One that `keys` names.",
          },
          url: {
            type: "string",
            format: "webhook_url",
            required: true,
            description: "Where notices are posted. No redirect is followed.",
          },
          secrets_env: {
            type: "list",
            required: true,
            whenEmpty: "a webhook without a secret cannot be told from a forgery",
            description:
              "Who signs: with more than one, each notice carries a signature of each, so that they can change.",
            of: {
              type: "string",
              format: "variable",
              required: true,
              description: "Environment variable that holds a secret: `whsec_` and the base64 of 24 to 64 bytes.",
            },
          },
          events: {
            type: "list",
            default: ["approval.pending", "approval.approved", "approval.denied", "approval.expired"],
            whenEmpty: "leave the key out to tell all",
            description: "What it is told of.",
            of: {
              type: "choice",
              values: ["approval.pending", "approval.approved", "approval.denied", "approval.expired"],
              required: true,
              description: "A kind of event.",
            },
          },
          timeout_ms: {
            type: "integer",
            min: 100,
            max: 60_000,
            default: 10_000,
            description: "Time for one attempt, from connecting to the answer.",
          },
          max_attempts: {
            type: "integer",
            min: 1,
            max: 100,
            default: 20,
            description:
              "Attempts, 5 s to 1 h apart, before a notice goes to the dead letters. 20 take five to ten hours.",
          },
        },
      },
    },
  },
} as const;

export const sessionsSchema = {
  type: "object",
  description:
    "What is watched of sessions, what stops one by itself, and who may stop everything. Operators stop and release sessions at any time.",
  fields: {
    gateway_tenant: {
      type: "string",
      format: "name",
      default: null,
      description:
        "Tenant whose admins may stop the whole gateway over the admin API, and release it. None: nobody may.",
    },
    max_active: {
      type: "integer",
      min: 100,
      max: 1_000_000,
      default: 10_000,
      description:
        "Sessions whose last actions are in memory. Of one more, the one that was silent longest is folded: its risk, taints and counts stay in the store.",
    },
    forget_days: {
      type: "integer",
      min: 1,
      max: 3_650,
      default: 30,
      description:
        "A session that attempted nothing for so long is forgotten, its taints too, unless it is stopped. Its evidence stays.",
    },
    risk: {
      type: "object",
      description: "The risk of a session: what policy finds in its actions adds to it, and time drains it.",
      fields: {
        kill_at: {
          type: "integer",
          min: 0,
          max: 1_000,
          default: 80,
          description:
            "A session whose risk comes to this is stopped until an operator or admin releases it. 0: none is.",
        },
        window_seconds: {
          type: "integer",
          min: 1,
          max: 604_800,
          default: 1_800,
          description: "How long a risk of `kill_at` takes to drain to nothing.",
        },
        mode: {
          type: "choice",
          values: ["enforce", "shadow"],
          default: "enforce",
          description: "`shadow`: a session that would be stopped is counted, and goes on.",
        },
      },
    },
    drift: {
      type: "object",
      description: "What becomes of actions that depart from the manifest of their session's task.",
      fields: {
        mode: {
          type: "choice",
          values: ["enforce", "shadow"],
          default: "enforce",
          description: "Of manifests that name no mode. `shadow`: departures are only recorded.",
        },
        decision: {
          type: "choice",
          values: ["review", "block"],
          default: "review",
          description:
            "Of a tool, a resource or a write domain that is not expected. Too many actions, and those of a task that is over, are blocked.",
        },
      },
    },
    task_signers: {
      type: "list",
      default: [],
      whenEmpty: "leave the key out to accept no references",
      description: "Whose signed references bind a session to a task.",
      of: {
        type: "object",
        description: "One signer.",
        fields: {
          id: { type: "string", format: "name", required: true, description: "What evidence calls the signer." },
          tenant: { type: "string", format: "name", required: true, description: "Whose sessions it may bind." },
          public_key: {
            type: "string",
            format: "public_key",
            required: true,
            description: "An Ed25519 public key, as `gateway pack keys new` prints it.",
          },
        },
      },
    },
    review_flood: {
      type: "object",
      description: "A session that asks for too many reviews is stopped until an operator or admin releases it.",
      fields: {
        reviews: {
          type: "integer",
          min: 0,
          max: 10_000,
          default: 5,
          description:
            "New reviews that a session may ask for within the window; the next one stops it. 0: any number.",
        },
        window_seconds: {
          type: "integer",
          min: 1,
          max: 86_400,
          default: 300,
          description: "How long a review counts.",
        },
      },
    },
  },
} as const;

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
