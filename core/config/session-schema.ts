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
