import { capabilities } from "../action/capability.ts";
import { modelHints } from "../action/model-api.ts";
import { choice, flag, integer, list, map, object, onlyWhere, optional, text } from "./schema.ts";

export const upstreamSchema = object("One MCP server.", {
  name: text("Name of the upstream; the `target` that policy sees. Unique.", { format: "name" }),
  transport: choice("`stdio`: a process of the gateway's own. `http`: Streamable HTTP. `sse`: the older HTTP+SSE.", [
    "stdio",
    "http",
    "sse",
  ]),
  command: onlyWhere(
    "transport",
    ["stdio"],
    text("Program to start. With a `/` in it, relative to the configuration file's folder; else found in PATH.", {
      format: "path",
    }),
  ),
  args: onlyWhere(
    "transport",
    ["stdio"],
    list("Arguments of the program. No shell reads them.", text("One argument.", { format: "argument" }), {
      default: [],
    }),
  ),
  cwd: onlyWhere(
    "transport",
    ["stdio"],
    optional(
      text("Working folder of the program, relative to the configuration file's folder. Left out: the gateway's.", {
        format: "path",
      }),
    ),
  ),
  env: onlyWhere(
    "transport",
    ["stdio"],
    map(
      "Environment variables with values that are not secret.",
      "process_variable",
      text("The value.", { format: "argument" }),
      { default: {} },
    ),
  ),
  env_from: onlyWhere(
    "transport",
    ["stdio"],
    list(
      "Environment variables copied from the gateway's own environment. Each must be set.",
      text("Name of the variable.", { format: "variable" }),
      { default: [] },
    ),
  ),
  url: onlyWhere("transport", ["http", "sse"], text("Endpoint of the server.", { format: "url" })),
  headers: onlyWhere(
    "transport",
    ["http", "sse"],
    map(
      "Headers with values that are not secret, sent with every request.",
      "header_name",
      text("The value.", { format: "header_value" }),
      { default: {} },
    ),
  ),
  headers_env: onlyWhere(
    "transport",
    ["http", "sse"],
    map(
      "Headers whose values are secret.",
      "header_name",
      text("Environment variable that holds the value, whole: `Bearer …` and all.", { format: "variable" }),
      { default: {} },
    ),
  ),
  tool_prefix: text("Put before each tool name of this upstream as clients see it. Unique unless empty.", {
    format: "tool_prefix",
    default: "",
  }),
  protocol: choice("MCP era spoken with the upstream. `auto` finds out.", ["auto", "legacy", "modern"], {
    default: "auto",
  }),
  connection: choice(
    "`session`: one connection for each client session. `shared`: one for all of them.",
    ["session", "shared"],
    { default: "session" },
  ),
  timeout_ms: integer("A call without answer or progress for so long has failed, its outcome unknown.", {
    minimum: 1,
    maximum: 86_400_000,
    default: 60_000,
  }),
  max_timeout_ms: integer("The same for a call that reports progress. At least `timeout_ms`.", {
    minimum: 1,
    maximum: 86_400_000,
    default: 900_000,
  }),
  start_timeout_ms: integer("Time to start and to answer the first request.", {
    minimum: 1,
    maximum: 600_000,
    default: 15_000,
  }),
  max_connections: integer("Connections, or processes, at once.", { minimum: 1, maximum: 10_000, default: 64 }),
  idle_ms: integer("A connection unused for so long is closed.", {
    minimum: 1_000,
    maximum: 86_400_000,
    default: 300_000,
  }),
  capabilities: map(
    "What each tool does, by its name at the upstream or by glob. Left out: `execute`.",
    "tool_glob",
    choice("The capability.", capabilities),
    { default: {} },
  ),
  trust_annotations: flag("Let the upstream's own tool annotations loosen a capability. They can always tighten it.", {
    default: false,
  }),
  untrusted: list(
    "Tools, by their name at the upstream, and methods, such as `resources/read`, that bring in words of strangers: they taint the session `untrusted`.",
    text("A name, or a glob with `*`.", { format: "action_glob" }),
    { default: [] },
  ),
});

export const providerSchema = object("One model provider.", {
  name: text("Name of the provider; `<name>/<model>` is the `target` that policy sees. Unique.", { format: "name" }),
  type: choice(
    "`openai`: whatever speaks chat completions. `anthropic`: whatever speaks messages. `mock`: answers by itself.",
    ["mock", "openai", "anthropic"],
  ),
  enabled: flag("False: no route may name it. True alone changes nothing: a route has to name it.", { default: true }),
  base_url: onlyWhere(
    "type",
    ["openai", "anthropic"],
    text(
      "As the vendors' own clients take it: `openai` with `/v1`, `anthropic` without. With `api_key_env`: https:, or this machine.",
      { format: "url" },
    ),
  ),
  api_key_env: onlyWhere(
    "type",
    ["openai", "anthropic"],
    optional(
      text("Environment variable that holds the provider's key. Left out: no key is sent.", { format: "variable" }),
    ),
  ),
  models: list(
    "Models that it may be asked for, by the names that clients use.",
    text("A model.", { format: "model_name" }),
    { whenEmpty: "a provider without models serves nothing" },
  ),
  first_byte_timeout_ms: integer("From asking to the first byte of an answer.", {
    minimum: 1,
    maximum: 86_400_000,
    default: 60_000,
  }),
  idle_timeout_ms: integer("Silence within an answer.", { minimum: 1, maximum: 86_400_000, default: 30_000 }),
  max_timeout_ms: integer("The longest one answer may take. At least `first_byte_timeout_ms`.", {
    minimum: 1,
    maximum: 86_400_000,
    default: 900_000,
  }),
  max_retries: integer("Further attempts where the provider certainly did not serve the request.", {
    minimum: 0,
    maximum: 10,
    default: 2,
  }),
  max_connections: integer("Requests at once. One more is refused.", { minimum: 1, maximum: 10_000, default: 256 }),
  breaker: object("When a provider that keeps failing is left alone.", {
    failures: integer("Failures in a row until it rests.", { minimum: 1, maximum: 1_000, default: 5 }),
    rest_ms: integer("How long it rests. Then one request tries whether it is back.", {
      minimum: 1,
      maximum: 3_600_000,
      default: 30_000,
    }),
  }),
});

export const modelGatewaySchema = object("Model requests.", {
  tool_passthrough: flag("Whether requests to `/v1/messages` may offer tools to the model.", { default: false }),
  max_concurrent: integer("Model requests at once; one more is refused. One key has at most half of them.", {
    minimum: 1,
    maximum: 100_000,
    default: 256,
  }),
  holdback_bytes: integer(
    "Of a streamed answer, how much of each text waits for what follows before it is judged and released.",
    { minimum: 0, maximum: 65_536, default: 256 },
  ),
  drop_hints: list(
    "Hints in requests that are left behind where a provider speaks the other API and has no words for them. Everything else it has no words for is refused.",
    choice("The name of a member.", modelHints),
    { default: [] },
  ),
  routes: list(
    "Which models clients may ask for, and who serves them. What no route names is never asked.",
    object("One model.", {
      model: text("The model as clients say it, exactly. Unique.", { format: "model_name" }),
      providers: list(
        "Who serves it, in order.",
        object("One provider.", {
          name: text("Name of an enabled provider whose `models` name the route's model.", { format: "name" }),
          model: optional(
            text("What the provider calls the model. Left out: as the route does.", { format: "model_name" }),
          ),
          weight: optional(
            integer("Its share of the sessions. Either all providers of the route have one, or the first serves all.", {
              minimum: 1,
              maximum: 1_000,
            }),
          ),
        }),
        { whenEmpty: "leave the route out to serve nobody" },
      ),
      fallback: flag("Whether the next provider is asked, as an action of its own, where one failed.", {
        default: false,
      }),
      canary: object("A provider that is tried with a few of the sessions.", {
        name: optional(text("Name of the provider.", { format: "name" })),
        model: optional(
          text("What the provider calls the model. Left out: as the route does.", { format: "model_name" }),
        ),
        percent: integer("Its share of the sessions.", { minimum: 0, maximum: 100, default: 0 }),
      }),
    }),
    { default: [] },
  ),
});

export const usageSchema = object("What may be asked of models. Tokens are those of input and output together.", {
  requests_per_minute: integer("Model requests of one key, refilled evenly. Tool calls do not count.", {
    minimum: 1,
    maximum: 1_000_000_000,
    default: 120,
  }),
  tokens_per_minute: integer("Tokens of one key, refilled evenly.", {
    minimum: 1,
    maximum: 1_000_000_000,
    default: 200_000,
  }),
  budgets: list(
    "What tenants and keys may spend. Every budget that counts a request must have room for it.",
    object("One budget. At least one of its limits must be given.", {
      tenant: text("Whose it is: the tenant of a key.", { format: "name" }),
      key: optional(text("The id of one key of the tenant. Left out: all of the tenant together.", { format: "name" })),
      tokens_per_day: optional(
        integer("Tokens in a day of UTC. Left out: any number.", { minimum: 1, maximum: 1_000_000_000_000 }),
      ),
      tokens_per_month: optional(
        integer("Tokens in a month of UTC. Left out: any number.", { minimum: 1, maximum: 1_000_000_000_000 }),
      ),
    }),
    { default: [], whenEmpty: "leave the key out to have no budgets" },
  ),
});
