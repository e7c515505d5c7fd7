import { capabilities } from "../action/capability.ts";
import { droppedHints, modelHints } from "../action/model-api.ts";
import { factStatements } from "./fact-schema.ts";
import { enumeration, flag, integer, list, map, object, onlyWhere, optional, string } from "./schema.ts";

export const upstreamSchema = object("One MCP server.", {
  name: string("Name of the upstream; the `target` that policy sees. Unique.", { format: "name" }),
  transport: enumeration("`stdio`: a child process. `http`: Streamable HTTP. `sse`: the older HTTP+SSE.", [
    "stdio",
    "http",
    "sse",
  ]),
  command: onlyWhere(
    "transport",
    ["stdio"],
    string("Program to start. With a `/`, relative to the configuration file's folder; otherwise found in PATH.", {
      format: "path",
    }),
  ),
  args: onlyWhere(
    "transport",
    ["stdio"],
    list("Arguments of the program, not interpreted by a shell.", string("One argument.", { format: "argument" }), {
      default: [],
    }),
  ),
  cwd: onlyWhere(
    "transport",
    ["stdio"],
    optional(
      string("Working folder of the program, relative to the configuration file's folder. Left out: the gateway's.", {
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
      string("The value.", { format: "argument" }),
      { default: {} },
    ),
  ),
  env_from: onlyWhere(
    "transport",
    ["stdio"],
    list(
      "Environment variables copied from the gateway's own environment. Each must be set.",
      string("Name of the variable.", { format: "variable" }),
      { default: [] },
    ),
  ),
  run_as: onlyWhere(
    "transport",
    ["stdio"],
    optional(
      object(
        "User and group of the process, so that it cannot read the gateway's keys. It gets no other group, and neither HOME nor TMPDIR of the gateway. Needs a gateway that runs as root, with CAP_SETUID, CAP_SETGID and CAP_KILL. Left out: the gateway's own user.",
        {
          uid: integer("Number of the user; not root.", { minimum: 1, maximum: 4_294_967_294 }),
          gid: integer("Number of the group; not root's.", { minimum: 1, maximum: 4_294_967_294 }),
        },
      ),
    ),
  ),
  url: onlyWhere("transport", ["http", "sse"], string("Endpoint of the server.", { format: "url" })),
  headers: onlyWhere(
    "transport",
    ["http", "sse"],
    map(
      "Headers with values that are not secret, sent with every request.",
      "header_name",
      string("The value.", { format: "header_value" }),
      { default: {} },
    ),
  ),
  headers_env: onlyWhere(
    "transport",
    ["http", "sse"],
    map(
      "Headers with secret values.",
      "header_name",
      string("Environment variable that holds the complete value, including `Bearer `.", { format: "variable" }),
      { default: {} },
    ),
  ),
  tool_prefix: string("Prefix of this upstream's tool names as clients see them. Unique unless empty.", {
    format: "tool_prefix",
    default: "",
  }),
  protocol: enumeration("MCP era of the upstream. `auto` detects it.", ["auto", "legacy", "modern"], {
    default: "auto",
  }),
  connection: enumeration(
    "`session`: one connection for each client session. `shared`: one for all of them.",
    ["session", "shared"],
    { default: "session" },
  ),
  timeout_ms: integer("Time without a response or progress after which a call fails with an unknown outcome.", {
    minimum: 1,
    maximum: 86_400_000,
    default: 60_000,
  }),
  max_timeout_ms: integer("Total time of a call that reports progress; at least `timeout_ms`.", {
    minimum: 1,
    maximum: 86_400_000,
    default: 900_000,
  }),
  start_timeout_ms: integer("Time to start and to answer the first request. Requests wait for at most 8 s of it.", {
    minimum: 1,
    maximum: 600_000,
    default: 15_000,
  }),
  max_connections: integer(
    "Concurrent connections, or processes. A further one closes an idle one, or is refused. `limits.key_share_percent` of them are for one key.",
    { minimum: 1, maximum: 10_000, default: 64 },
  ),
  idle_ms: integer("Idle time after which a connection is closed.", {
    minimum: 1_000,
    maximum: 86_400_000,
    default: 300_000,
  }),
  capabilities: map(
    "Capability of each tool, by its name at the upstream or by glob. It is final, whatever the upstream's annotations say. Left out: `execute`, or `delete` where they say so.",
    "tool_glob",
    enumeration("The capability.", capabilities),
    { default: {} },
  ),
  facts: factStatements,
  trust_annotations: flag(
    "Let the upstream's tool annotations decide the capability of a tool that `capabilities` leaves out. Else they can only strengthen it.",
    {
      default: false,
    },
  ),
  untrusted: list(
    "Tools, by their name at the upstream, and methods, such as `resources/read`, that return third-party content: they taint the session `untrusted`.",
    string("A name, or a glob with `*`.", { format: "action_glob" }),
    { default: [] },
  ),
  definitions: object("Its tools' definitions: one that may be an attack is withheld until a reviewer approves it.", {
    pin: flag(
      "Pin each definition when a tenant first meets it. One that changes later, replaces a tool that is gone, takes or resembles the name of another upstream's tool, or gives orders to the model is withheld. False: all are shown as they come.",
      { default: true },
    ),
    new_tools: enumeration(
      "Tools that an upstream adds to those it listed first. `pin`: shown where nothing is found. `review`: withheld.",
      ["pin", "review"],
      { default: "pin" },
    ),
  }),
});

export const providerSchema = object("One model provider.", {
  name: string("Name of the provider; `<name>/<model>` is the `target` that policy sees. Unique.", { format: "name" }),
  type: enumeration(
    "`openai`: the chat completions API. `responses`: the responses API. `anthropic`: the messages API. `mock`: built-in answers.",
    ["mock", "openai", "responses", "anthropic"],
  ),
  enabled: flag("False: no route may name it. True has no effect until a route names it.", { default: true }),
  base_url: onlyWhere(
    "type",
    ["openai", "responses", "anthropic"],
    string(
      "Base URL as the vendors' clients expect it: `openai` and `responses` with `/v1`, `anthropic` without. With `api_key_env`: https:, or this machine.",
      { format: "url" },
    ),
  ),
  api_key_env: onlyWhere(
    "type",
    ["openai", "responses", "anthropic"],
    optional(
      string("Environment variable that holds the provider's key. Left out: no key is sent.", { format: "variable" }),
    ),
  ),
  models: list("Models that it serves, by the names that clients use.", string("A model.", { format: "model_name" }), {
    whenEmpty: "a provider without models serves nothing",
  }),
  first_byte_timeout_ms: integer("Time to the first byte of a response.", {
    minimum: 1,
    maximum: 86_400_000,
    default: 60_000,
  }),
  idle_timeout_ms: integer("Time between two parts of a response.", {
    minimum: 1,
    maximum: 86_400_000,
    default: 30_000,
  }),
  max_timeout_ms: integer("Total time of a response; at least `first_byte_timeout_ms`.", {
    minimum: 1,
    maximum: 86_400_000,
    default: 900_000,
  }),
  max_retries: integer("Retries where the provider certainly did not serve the request.", {
    minimum: 0,
    maximum: 10,
    default: 2,
  }),
  max_connections: integer("Concurrent requests. Further ones are refused.", {
    minimum: 1,
    maximum: 10_000,
    default: 256,
  }),
  breaker: object("Circuit breaker.", {
    failures: integer("Consecutive failures that open the circuit.", { minimum: 1, maximum: 1_000, default: 5 }),
    rest_ms: integer("Time that the circuit stays open. Then one request probes the provider.", {
      minimum: 1,
      maximum: 3_600_000,
      default: 30_000,
    }),
  }),
});

/** Coding agents whose own tools the gateway knows. */
export const knownAgents = ["claude-code", "codex"] as const;

const modelToolsSchema = object(
  "What the tools do that models ask their clients to run. The calls of an answer have facts then, and an answer waits for its end where it asks for a call. Nothing is judged of calls of tools that are not named here.",
  {
    agents: list(
      "Coding agents whose own tools, such as `Bash`, count as stated. `capabilities` and `facts` come first.",
      enumeration("An agent.", knownAgents),
      { default: [] },
    ),
    capabilities: map(
      "Capability of each tool, by its name in requests or by glob: its effect where `facts` state nothing that has one. Left out for a tool of `facts`: `execute`.",
      "tool_glob",
      enumeration("The capability.", capabilities),
      { default: {} },
    ),
    facts: factStatements,
  },
);

export const modelGatewaySchema = object("Model requests.", {
  tool_passthrough: enumeration(
    "Tools that requests may offer to the model. `off`: none on `/v1/messages`. `client`: those that the client runs, whose " +
      "calls come back as actions. `all`: also those of `model_gateway.provider_tools`.",
    ["off", "client", "all"],
    { default: "off" },
  ),
  provider_tools: list(
    "Tools that a provider runs, out of the gateway's sight, and that `tool_passthrough: all` passes: types such as " +
      "`web_search_20250305`, or members of the request such as `mcp_servers`. Policy still judges each request.",
    string("A type, or the name of a member.", { format: "argument" }),
    { default: [] },
  ),
  tools: modelToolsSchema,
  max_concurrent: integer("Concurrent model requests; further ones are refused. One key gets at most half of them.", {
    minimum: 1,
    maximum: 100_000,
    default: 256,
  }),
  holdback_bytes: integer(
    "Bytes of each text of a streamed response that are held back until more arrives, so that policies see whole words.",
    { minimum: 0, maximum: 65_536, default: 256 },
  ),
  drop_hints: list(
    "Request hints that are dropped, and named in the log once for each provider, where a request is translated to another API that has no equivalent. Every other member without an equivalent is refused.",
    enumeration("The name of a member.", modelHints),
    { default: [...droppedHints] },
  ),
  routes: list(
    "Models that clients may request, and the providers that serve them. Models without a route are refused.",
    object("One model.", {
      model: string("Exact name that clients use. Unique.", { format: "model_name" }),
      providers: list(
        "Providers, in order of preference.",
        object("One provider.", {
          name: string("Name of an enabled provider whose `models` name the route's model.", { format: "name" }),
          model: optional(
            string("The provider's name for the model. Left out: the name of the route.", { format: "model_name" }),
          ),
          weight: optional(
            integer("Share of the sessions. Either all providers of the route have one, or the first serves all.", {
              minimum: 1,
              maximum: 1_000,
            }),
          ),
        }),
        { whenEmpty: "leave the route out to serve none" },
      ),
      fallback: flag("Try the next provider, as an action of its own, where one failed.", {
        default: false,
      }),
      canary: object("A provider that serves a share of the sessions.", {
        name: optional(string("Name of the provider.", { format: "name" })),
        model: optional(
          string("The provider's name for the model. Left out: the name of the route.", { format: "model_name" }),
        ),
        percent: integer("Share of the sessions.", { minimum: 0, maximum: 100, default: 0 }),
      }),
    }),
    { default: [] },
  ),
});

export const usageSchema = object("Limits of model requests. Tokens are input and output together.", {
  requests_per_minute: integer("Model requests of one key, as a token bucket. Tool calls do not count.", {
    minimum: 1,
    maximum: 1_000_000_000,
    default: 120,
  }),
  tokens_per_minute: integer("Tokens of one key, as a token bucket.", {
    minimum: 1,
    maximum: 1_000_000_000,
    default: 2_000_000,
  }),
  budgets: list(
    "Budgets of tenants and keys. Every budget that applies to a request must have room for it.",
    object("One budget, with at least one limit.", {
      tenant: string("Tenant; one that `keys` names.", { format: "name" }),
      key: optional(
        string("Id of one key of the tenant. Left out: all keys of the tenant together.", { format: "name" }),
      ),
      tokens_per_day: optional(
        integer("Tokens per UTC day. Left out: unlimited.", { minimum: 1, maximum: 1_000_000_000_000 }),
      ),
      tokens_per_month: optional(
        integer("Tokens per UTC month. Left out: unlimited.", { minimum: 1, maximum: 1_000_000_000_000 }),
      ),
    }),
    { default: [], whenEmpty: "leave the key out to have no budgets" },
  ),
});
