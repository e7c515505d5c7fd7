/** One model provider. Which keys apply depends on `type`. */
export const providerSchema = {
  type: "object",
  description: "One model provider.",
  fields: {
    name: {
      type: "string",
      format: "name",
      required: true,
      description: "Name of the provider; `<name>/<model>` is the `target` that policy sees. Unique.",
    },
    type: {
      type: "choice",
      values: ["mock", "openai", "anthropic"],
      required: true,
      description:
        "`openai`: whatever speaks chat completions. `anthropic`: whatever speaks messages. `mock`: answers by itself.",
    },
    enabled: {
      type: "boolean",
      default: true,
      description: "False: no route may name it. True alone changes nothing: a route has to name it.",
    },
    base_url: {
      type: "string",
      format: "url",
      required: true,
      only: { key: "type", values: ["openai", "anthropic"] },
      description:
        "As the vendors' own clients take it: `openai` with `/v1`, `anthropic` without. With `api_key_env`: https:, or this machine.",
    },
    api_key_env: {
      type: "string",
      format: "variable",
      default: null,
      only: { key: "type", values: ["openai", "anthropic"] },
      description: "Environment variable that holds the provider's key. Left out: no key is sent.",
    },
    models: {
      type: "list",
      required: true,
      whenEmpty: "a provider without models serves nothing",
      description: "Models that it may be asked for, by the names that clients use.",
      of: { type: "string", format: "model_name", required: true, description: "A model." },
    },
    first_byte_timeout_ms: {
      type: "integer",
      min: 1,
      max: 86_400_000,
      default: 60_000,
      description: "From asking to the first byte of an answer.",
    },
    idle_timeout_ms: {
      type: "integer",
      min: 1,
      max: 86_400_000,
      default: 30_000,
      description: "Silence within an answer.",
    },
    max_timeout_ms: {
      type: "integer",
      min: 1,
      max: 86_400_000,
      default: 900_000,
      description: "The longest one answer may take. At least `first_byte_timeout_ms`.",
    },
    max_retries: {
      type: "integer",
      min: 0,
      max: 10,
      default: 2,
      description: "Further attempts where the provider certainly did not serve the request.",
    },
    max_connections: {
      type: "integer",
      min: 1,
      max: 10_000,
      default: 256,
      description: "Requests at once. One more is refused.",
    },
    breaker: {
      type: "object",
      description: "When a provider that keeps failing is left alone.",
      fields: {
        failures: { type: "integer", min: 1, max: 1000, default: 5, description: "Failures in a row until it rests." },
        rest_ms: {
          type: "integer",
          min: 1,
          max: 3_600_000,
          default: 30_000,
          description: "How long it rests. Then one request tries whether it is back.",
        },
      },
    },
  },
} as const;

export const modelGatewaySchema = {
  type: "object",
  description: "Model requests.",
  fields: {
    tool_passthrough: {
      type: "boolean",
      default: false,
      description: "Whether requests to `/v1/messages` may offer tools to the model.",
    },
    max_concurrent: {
      type: "integer",
      min: 1,
      max: 100_000,
      default: 256,
      description: "Model requests at once; one more is refused. One key has at most half of them.",
    },
    holdback_bytes: {
      type: "integer",
      min: 0,
      max: 65_536,
      default: 256,
      description:
        "Of a streamed answer, how much of each text waits for what follows before it is judged and released.",
    },
    leave_out: {
      type: "list",
      default: [],
      description:
        "Hints in requests that are left behind where a provider speaks the other API and has no words for them. Everything else it has no words for is refused.",
      of: {
        type: "choice",
        values: [
          "cache_control",
          "context_management",
          "output_config",
          "prompt_cache_key",
          "reasoning_effort",
          "safety_identifier",
          "service_tier",
          "store",
          "thinking",
          "top_k",
          "verbosity",
        ],
        required: true,
        description: "The name of a member.",
      },
    },
    routes: {
      type: "list",
      default: [],
      description: "Which models clients may ask for, and who serves them. What no route names is never asked.",
      of: {
        type: "object",
        description: "One model.",
        fields: {
          model: {
            type: "string",
            format: "model_name",
            required: true,
            description: "The model as clients say it, exactly. Unique.",
          },
          providers: {
            type: "list",
            required: true,
            whenEmpty: "leave the route out to serve nobody",
            description: "Who serves it, in order.",
            of: {
              type: "object",
              description: "One provider.",
              fields: {
                name: {
                  type: "string",
                  format: "name",
                  required: true,
                  description: "Name of an enabled provider whose `models` name the route's model.",
                },
                model: {
                  type: "string",
                  format: "model_name",
                  default: null,
                  description: "What the provider calls the model. Left out: as the route does.",
                },
                weight: {
                  type: "integer",
                  min: 1,
                  max: 1000,
                  default: null,
                  description:
                    "Its share of the sessions. Either all providers of the route have one, or the first serves all.",
                },
              },
            },
          },
          fallback: {
            type: "boolean",
            default: false,
            description: "Whether the next provider is asked, as an action of its own, where one failed.",
          },
          canary: {
            type: "object",
            description: "A provider that is tried with a few of the sessions.",
            fields: {
              name: { type: "string", format: "name", default: null, description: "Name of the provider." },
              model: {
                type: "string",
                format: "model_name",
                default: null,
                description: "What the provider calls the model. Left out: as the route does.",
              },
              percent: { type: "integer", min: 0, max: 100, default: 0, description: "Its share of the sessions." },
            },
          },
        },
      },
    },
  },
} as const;
