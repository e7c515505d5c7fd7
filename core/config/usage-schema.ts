export const usageSchema = {
  type: "object",
  description: "What may be asked of models. Tokens are those of input and output together.",
  fields: {
    requests_per_minute: {
      type: "integer",
      min: 1,
      max: 1_000_000_000,
      default: 120,
      description: "Model requests of one key, refilled evenly. Tool calls do not count.",
    },
    tokens_per_minute: {
      type: "integer",
      min: 1,
      max: 1_000_000_000,
      default: 200_000,
      description: "Tokens of one key, refilled evenly.",
    },
    budgets: {
      type: "list",
      default: [],
      whenEmpty: "leave the key out to have no budgets",
      description: "What tenants and keys may spend. Every budget that counts a request must have room for it.",
      of: {
        type: "object",
        description: "One budget. At least one of its limits must be given.",
        fields: {
          tenant: { type: "string", format: "name", required: true, description: "Whose it is: the tenant of a key." },
          key: {
            type: "string",
            format: "name",
            default: null,
            description: "The id of one key of the tenant. Left out: all of the tenant together.",
          },
          tokens_per_day: {
            type: "integer",
            min: 1,
            max: 1_000_000_000_000,
            default: null,
            description: "Tokens in a day of UTC. Left out: any number.",
          },
          tokens_per_month: {
            type: "integer",
            min: 1,
            max: 1_000_000_000_000,
            default: null,
            description: "Tokens in a month of UTC. Left out: any number.",
          },
        },
      },
    },
  },
} as const;
