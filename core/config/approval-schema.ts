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
