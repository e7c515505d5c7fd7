import { roles } from "../action/role.ts";
import { choice, flag, integer, list, map, object, optional, text } from "./schema.ts";

export const listenSchema = object("Where the gateway listens, and which browsers and names may reach it.", {
  host: text(
    "Address of the gateway port. A non-loopback one needs `keys`, `mcp_gateway.require_auth: true` and `listen.allowed_hosts`.",
    { format: "listen_host", default: "127.0.0.1" },
  ),
  admin_host: text(
    "Address of the admin and metrics ports. A non-loopback one needs the same as `host`; keep it off public networks.",
    { format: "listen_host", default: "127.0.0.1" },
  ),
  gateway_port: integer("Port for agents. 0 takes any free port.", { minimum: 0, maximum: 65_535, default: 8_080 }),
  admin_port: integer("Port for operators. Never expose it publicly. 0 takes any free port.", {
    minimum: 0,
    maximum: 65_535,
    default: 8_081,
  }),
  metrics_port: integer("Port for metrics. 0 takes any free port.", { minimum: 0, maximum: 65_535, default: 8_082 }),
  allowed_hosts: list(
    "`Host` headers accepted. Left out: loopback names only.",
    text("A host, or `host:port`.", { format: "allowed_host" }),
    { default: [], whenEmpty: "leave the key out to allow loopback names only" },
  ),
  allowed_origins: list(
    "`Origin` headers accepted. Left out: loopback origins only.",
    text("`scheme://host[:port]`.", { format: "origin" }),
    { default: [], whenEmpty: "leave the key out to allow loopback origins only" },
  ),
});

export const keysSchema = list(
  "API keys. Left out: nobody can authenticate.",
  object("One key, as `gateway keys new` prints it. It has either `key_hash` or `key_env`.", {
    id: text("Name of the key in logs and evidence. `anonymous` is taken.", { format: "name" }),
    tenant: text("The tenant the key belongs to.", { format: "name" }),
    role: choice("What the key may do in its tenant.", roles),
    key_hash: optional(text("Hash of the key.", { format: "key_hash" })),
    key_env: optional(text("Environment variable that holds the key: 32 to 512 characters.", { format: "variable" })),
  }),
  { default: [], whenEmpty: "leave the key out to have no keys" },
);

export const mcpGatewaySchema = object("The MCP endpoint.", {
  require_auth: flag(
    "Every MCP request needs a key. False needs `mcp_gateway.anonymous_tenant`, and leaves out `/sse`, which always needs one.",
    { default: true },
  ),
  anonymous_tenant: optional(
    text("Tenant of callers without a key. Without effect while `require_auth` is true.", { format: "name" }),
  ),
  meta_passthrough: list(
    "Further `_meta` keys that reach the upstream. They become part of what policy judges.",
    text("A `_meta` key.", { format: "meta_key" }),
    { default: [] },
  ),
  max_sessions: integer("MCP sessions and connections to `/sse` open at once, together. One more is refused.", {
    minimum: 1,
    maximum: 100_000,
    default: 1_000,
  }),
  session_idle_ms: integer(
    "An MCP session unused for so long is closed; a connection to `/sse` lives while it is connected.",
    { minimum: 1_000, maximum: 86_400_000, default: 1_800_000 },
  ),
});

export const dataDirSchema = text(
  "Folder of the state and the evidence, relative to the configuration file's folder.",
  { format: "path", default: "./data" },
);

export const stateSchema = object("Persistence.", {
  enabled: flag("Keep state and evidence on disk. False: in memory, gone at the next start.", { default: true }),
});

export const resilienceSchema = object("Backups of everything that the gateway keeps, its keys left out.", {
  enabled: flag(
    "Serve `POST /admin/v1/resilience/backup` and `GET /admin/v1/resilience/backups`. True needs `state.enabled`.",
    { default: false },
  ),
  tenant: optional(
    text(
      "Tenant whose admins make backups, which hold what all tenants have, and whose operators list them. None: the one that all `keys` belong to; nobody where there are several.",
      { format: "name" },
    ),
  ),
  backup_dir: text(
    "Folder of the backups, relative to the configuration file's folder; made with mode 0700. No symbolic link, not open to others, neither inside `data_dir` nor around it.",
    { format: "path", default: "./backups" },
  ),
  keep: integer("Backups that stay. Once a further one is complete, the oldest is deleted.", {
    minimum: 1,
    maximum: 1_000,
    default: 7,
  }),
});

export const telemetrySchema = object(
  "OpenTelemetry: traces and metrics for a collector. Off until an endpoint is given.",
  {
    endpoint: optional(
      text(
        "Where an OTLP collector listens for HTTP, such as `http://127.0.0.1:4318`: told at `/v1/traces` and `/v1/metrics` below it. Left out: nothing is traced, and nobody told. No `OTEL_` variable is read.",
        { format: "url" },
      ),
    ),
    protocol: choice("How it is told.", ["http/protobuf", "http/json"], { default: "http/protobuf" }),
    headers_env: map(
      "Headers for the collector, whose values are secret.",
      "header_name",
      text("Environment variable that holds the value, whole: `Bearer …` and all.", { format: "variable" }),
      { default: {} },
    ),
    timeout_ms: integer("The longest one request to the collector may take.", {
      minimum: 100,
      maximum: 60_000,
      default: 10_000,
    }),
    sample_percent: integer("How many of a hundred requests are traced. Chance decides, never the client.", {
      minimum: 0,
      maximum: 100,
      default: 100,
    }),
    max_queued_spans: integer("Spans that wait for the collector. What comes beyond is dropped, and counted.", {
      minimum: 512,
      maximum: 1_000_000,
      default: 8_192,
    }),
    metrics_interval_ms: integer(
      "Time from one report of the metrics to the next, at least 1000. 0: none are reported.",
      { minimum: 0, maximum: 3_600_000, default: 60_000 },
    ),
    exemplars: flag(
      "Name in `/metrics` the latest trace of each bucket of the durations of policy and dispatch, to scrapers that ask for OpenMetrics. True needs `endpoint`.",
      { default: false },
    ),
  },
);

export const limitsSchema = object(
  "Bounds of requests, answers and connections. Beyond one is a clear error, never a truncation.",
  {
    body_bytes: integer("Request body.", { minimum: 1_024, maximum: 268_435_456, default: 4_194_304 }),
    json_depth: integer("Arrays and objects inside one another.", { minimum: 4, maximum: 512, default: 64 }),
    json_nodes: integer("Arrays, objects and members together.", {
      minimum: 100,
      maximum: 10_000_000,
      default: 100_000,
    }),
    json_string_length: integer("One string, in UTF-16 code units.", {
      minimum: 256,
      maximum: 268_435_456,
      default: 4_194_304,
    }),
    upstream_reply_bytes: integer("One answer of an upstream.", {
      minimum: 1_024,
      maximum: 268_435_456,
      default: 16_777_216,
    }),
    headers_ms: integer("Time for a client to send its headers.", { minimum: 100, maximum: 600_000, default: 10_000 }),
    body_ms: integer("Time for a client to send the whole request. At least `headers_ms`.", {
      minimum: 100,
      maximum: 3_600_000,
      default: 25_000,
    }),
    keep_alive_ms: integer("A connection of a client unused for so long is closed.", {
      minimum: 100,
      maximum: 3_600_000,
      default: 65_000,
    }),
    unread_ms: integer(
      "A client that takes nothing for so long of what waits for it is cut off, at the latest after twice that.",
      { minimum: 100, maximum: 3_600_000, default: 30_000 },
    ),
    max_connections: integer("Connections of clients at once, on each port.", {
      minimum: 1,
      maximum: 1_000_000,
      default: 10_000,
    }),
    max_websockets: integer("Connections to `/v1/ws` at once. One more is refused. 0: none is served.", {
      minimum: 0,
      maximum: 100_000,
      default: 1_000,
    }),
    admin_requests_per_minute: integer(
      "Requests of one key to the admin port, refilled evenly. Health and metrics do not count.",
      { minimum: 1, maximum: 1_000_000, default: 6_000 },
    ),
    admin_unauthenticated_per_minute: integer(
      "Requests without a good key to the admin port, from one address, refilled evenly. A good key is let in nonetheless.",
      { minimum: 1, maximum: 1_000_000, default: 600 },
    ),
    drain_ms: integer("Time at a stop for what is in flight to end.", {
      minimum: 0,
      maximum: 3_600_000,
      default: 15_000,
    }),
  },
);

export const logSchema = object("The log on standard error.", {
  level: choice("The least severe entries to write.", ["debug", "info", "warn", "error", "silent"], {
    default: "info",
  }),
});
