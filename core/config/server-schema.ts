import { roles } from "../action/role.ts";
import { enumeration, flag, integer, list, map, object, optional, string } from "./schema.ts";

export const listenSchema = object("Addresses and ports, and the host names and origins that are accepted.", {
  host: string(
    "Address of the gateway port. A non-loopback one needs `keys`, `mcp_gateway.require_auth: true` and `listen.allowed_hosts`.",
    { format: "listen_host", default: "127.0.0.1" },
  ),
  admin_host: string(
    "Address of the admin and metrics ports. A non-loopback one needs the same as `host`; never expose it to public networks.",
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
    string("A host, or `host:port`.", { format: "allowed_host" }),
    { default: [], whenEmpty: "leave the key out to allow loopback names only" },
  ),
  allowed_origins: list(
    "`Origin` headers accepted. Left out: loopback origins only. Requests of the admin port that change something are accepted of these and of that port's own origin alone.",
    string("`scheme://host[:port]`.", { format: "origin" }),
    { default: [], whenEmpty: "leave the key out to allow loopback origins only" },
  ),
});

export const egressSchema = object("Connections that the gateway opens, to whatever this file names.", {
  private_hosts: list(
    "Hosts with public names that may have addresses which are not public, as a company's own servers do. Of other names only public addresses are connected to; addresses, `localhost`, names without a dot and those of private domains (`.internal`, `.local`, `.svc`) need no entry. A metadata service of a cloud and the gateway's own ports are never connected to.",
    string("A host name, `*.` and a domain for all names below it, or an address.", { format: "private_host" }),
    { default: [] },
  ),
});

export const keysSchema = list(
  "API keys. Left out: no caller can authenticate.",
  object("One key, as `gateway keys new` prints it, with either `key_hash` or `key_env`.", {
    id: string("Name of the key in logs and evidence. `anonymous` is reserved.", { format: "name" }),
    tenant: string("The tenant the key belongs to.", { format: "name" }),
    role: enumeration("Role of the key in its tenant.", roles),
    key_hash: optional(string("Hash of the key.", { format: "key_hash" })),
    key_env: optional(string("Environment variable that holds the key: 32 to 512 characters.", { format: "variable" })),
  }),
  { default: [], whenEmpty: "leave the key out to have no keys" },
);

const signatureAlgorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
] as const;

export const oauthSchema = object(
  "OAuth 2.1 on the gateway port, beside `keys`: JWT access tokens of one authorization server. Off until `issuer` is given.",
  {
    issuer: optional(
      string("Issuer of the tokens, exactly as their claim `iss` has it. Left out: only keys authenticate.", {
        format: "oauth_url",
      }),
    ),
    audience: optional(
      string(
        "URL of the MCP endpoint as clients reach it, such as `https://gateway.example/mcp`: the resource that clients ask tokens for, and that the claim `aud` must name. Its path is `/mcp` or empty. Required with `issuer`.",
        { format: "oauth_url" },
      ),
    ),
    scopes: list(
      "Scopes that clients are told to ask for, and that every token must have, in its claim `scope` or `scp`.",
      string("One scope.", { format: "scope" }),
      { default: [] },
    ),
    jwks_uri: optional(
      string("Address of the issuer's signing keys. Left out: read from the issuer's metadata.", {
        format: "oauth_url",
      }),
    ),
    jwks_cache_seconds: integer(
      "Time that fetched signing keys serve. They are fetched anew from half of it on; once it is over and the issuer cannot be reached, no token is accepted.",
      { minimum: 1, maximum: 86_400, default: 600 },
    ),
    jwks_refetch_seconds: integer(
      "Least time between two fetches of the signing keys, whatever key ids tokens name. At most `jwks_cache_seconds`.",
      { minimum: 1, maximum: 3_600, default: 10 },
    ),
    algorithms: list("Signature algorithms that are accepted.", enumeration("One algorithm.", signatureAlgorithms), {
      default: ["RS256", "PS256", "ES256", "EdDSA", "Ed25519"],
      whenEmpty: "leave the key out to accept the usual ones",
    }),
    token_type: enumeration(
      "`at+jwt`: the header `typ` must mark an access token (RFC 9068). `any`: for issuers that mark none; make sure that they issue no other tokens for `audience`.",
      ["at+jwt", "any"],
      { default: "at+jwt" },
    ),
    leeway_seconds: integer("Difference of clocks that is allowed for the claims `exp` and `nbf`.", {
      minimum: 0,
      maximum: 300,
      default: 30,
    }),
    tenant: optional(
      string("Tenant of every token's subject. With `issuer`, either this or `tenant_claim`.", { format: "name" }),
    ),
    tenant_claim: optional(string("Claim that says the tenant, by the values of `tenants`.", { format: "claim" })),
    tenants: map(
      "Tenant for each value of `tenant_claim`. Tokens with another value, or none, are refused.",
      "claim",
      string("The tenant, which must have a key.", { format: "name" }),
      { default: {} },
    ),
    role: enumeration("Role of subjects in their tenant. Agents need no more than `viewer`.", roles, {
      default: "viewer",
    }),
    role_claim: optional(
      string("Claim that says the role, a text or a list of texts, by the values of `roles`.", { format: "claim" }),
    ),
    roles: map(
      "Role for each value of `role_claim`; of several, the strongest. Where no value is listed, `role` applies.",
      "claim",
      enumeration("The role. It gives access to no other port: operators need a key.", roles),
      { default: {} },
    ),
  },
);

export const mcpGatewaySchema = object("The MCP endpoint.", {
  require_auth: flag(
    "Require a key for every MCP request. False needs `mcp_gateway.anonymous_tenant`; `/sse` always requires a key.",
    { default: true },
  ),
  anonymous_tenant: optional(
    string("Tenant of callers without a key. Without effect while `require_auth` is true.", { format: "name" }),
  ),
  meta_passthrough: list(
    "Further `_meta` keys that are forwarded to the upstream. Policies see them.",
    string("A `_meta` key.", { format: "meta_key" }),
    { default: [] },
  ),
  max_sessions: integer(
    "Open MCP sessions and `/sse` connections together. A further one ends the MCP session that was idle longest, if that is over a minute; else it is refused.",
    { minimum: 1, maximum: 100_000, default: 1_000 },
  ),
  session_idle_ms: integer("Idle time after which an MCP session is closed. Does not apply to `/sse` connections.", {
    minimum: 1_000,
    maximum: 86_400_000,
    default: 1_800_000,
  }),
});

export const telemetrySchema = object(
  "OpenTelemetry: traces and metrics for a collector. Off until an endpoint is given.",
  {
    endpoint: optional(
      string(
        "OTLP/HTTP collector, such as `http://127.0.0.1:4318`; `/v1/traces` and `/v1/metrics` are appended. Left out: nothing is exported. `OTEL_` variables are ignored.",
        { format: "url" },
      ),
    ),
    protocol: enumeration("Encoding of the exports.", ["http/protobuf", "http/json"], { default: "http/protobuf" }),
    headers_env: map(
      "Headers for the collector, with secret values.",
      "header_name",
      string("Environment variable that holds the complete value, including `Bearer `.", { format: "variable" }),
      { default: {} },
    ),
    timeout_ms: integer("Time for one request to the collector.", {
      minimum: 100,
      maximum: 60_000,
      default: 10_000,
    }),
    sample_percent: integer("Percentage of requests that are traced, chosen at random. Clients cannot influence it.", {
      minimum: 0,
      maximum: 100,
      default: 100,
    }),
    max_queued_spans: integer("Spans waiting for export. Further ones are dropped and counted.", {
      minimum: 512,
      maximum: 1_000_000,
      default: 8_192,
    }),
    metrics_interval_ms: integer("Time between exports of the metrics, at least 1000. 0: metrics are not exported.", {
      minimum: 0,
      maximum: 3_600_000,
      default: 60_000,
    }),
    exemplars: flag(
      "Attach the latest trace id to each bucket of the policy and dispatch histograms in `/metrics`, for scrapers that accept OpenMetrics. True needs `endpoint`.",
      { default: false },
    ),
  },
);

export const limitsSchema = object(
  "Bounds of requests, responses and connections. Exceeding one is an error; nothing is truncated.",
  {
    body_bytes: integer("Bytes of a request body.", { minimum: 1_024, maximum: 268_435_456, default: 4_194_304 }),
    json_depth: integer("Depth of nested arrays and objects.", { minimum: 4, maximum: 512, default: 64 }),
    json_nodes: integer(
      "Members and items together in a tool call, and in any other request but those to models; an empty array or object counts once more.",
      { minimum: 100, maximum: 10_000_000, default: 10_000 },
    ),
    model_json_nodes: integer("The same in a model request.", {
      minimum: 100,
      maximum: 10_000_000,
      default: 100_000,
    }),
    json_members: integer("Members of one object in any request.", {
      minimum: 100,
      maximum: 10_000_000,
      default: 10_000,
    }),
    json_string_length: integer("Length of one string, in UTF-16 code units.", {
      minimum: 256,
      maximum: 268_435_456,
      default: 4_194_304,
    }),
    upstream_reply_bytes: integer("Bytes of one upstream response.", {
      minimum: 1_024,
      maximum: 268_435_456,
      default: 16_777_216,
    }),
    upstream_reply_nodes: integer("Members and items together in one response of an upstream or a provider.", {
      minimum: 100,
      maximum: 10_000_000,
      default: 100_000,
    }),
    headers_ms: integer("Time for a client to send the request headers.", {
      minimum: 100,
      maximum: 600_000,
      default: 10_000,
    }),
    body_ms: integer("Time for a client to send the whole request; at least `headers_ms`.", {
      minimum: 100,
      maximum: 3_600_000,
      default: 25_000,
    }),
    keep_alive_ms: integer("Idle time after which a client's connection is closed.", {
      minimum: 100,
      maximum: 3_600_000,
      default: 65_000,
    }),
    unread_ms: integer(
      "Time without progress after which a client that does not read its response is disconnected, at most twice that.",
      { minimum: 100, maximum: 3_600_000, default: 30_000 },
    ),
    max_connections: integer("Concurrent client connections on each port.", {
      minimum: 1,
      maximum: 1_000_000,
      default: 10_000,
    }),
    max_websockets: integer("Concurrent connections to `/v1/ws`. Further ones are refused. 0: the endpoint is off.", {
      minimum: 0,
      maximum: 100_000,
      default: 1_000,
    }),
    key_calls_per_minute: integer(
      "Requests of one key to the gateway port per minute, and messages on `/v1/ws`, as a token bucket. Model requests do not count: `usage` limits them.",
      { minimum: 1, maximum: 1_000_000_000, default: 600 },
    ),
    tenant_calls_per_minute: integer("The same for all keys of one tenant together.", {
      minimum: 1,
      maximum: 1_000_000_000,
      default: 6_000,
    }),
    key_cpu_percent: integer(
      "Share of the time of one processor that requests of one key to the gateway port may use, of the main thread, of the threads of plugins, and to seal and write large bodies and outputs, while the threads are busy; for bodies from 256 KiB on always. Two seconds' worth is saved up. 100: unlimited.",
      { minimum: 1, maximum: 100, default: 25 },
    ),
    tenant_cpu_percent: integer("The same for all keys of one tenant together.", {
      minimum: 1,
      maximum: 100,
      default: 50,
    }),
    cpu_busy_percent: integer(
      "Load of the main thread from which on `key_cpu_percent` and `tenant_cpu_percent` are enforced; they also are while calls wait for a thread of plugins. 0: always.",
      { minimum: 0, maximum: 100, default: 75 },
    ),
    max_unauthenticated_websockets: integer(
      "Connections to `/v1/ws` of one address that have sent no key yet. A further one ends the oldest of them.",
      { minimum: 1, maximum: 100_000, default: 16 },
    ),
    unauthenticated_per_minute: integer(
      "Failed attempts to authenticate at the gateway port, per address and minute, as a token bucket: requests with an unknown key or an invalid access token, and messages on `/v1/ws` before a valid key. Valid keys and tokens are not affected. An IPv6 address counts with its /64.",
      { minimum: 1, maximum: 1_000_000, default: 600 },
    ),
    key_share_percent: integer(
      "Percentage of `mcp_gateway.max_sessions`, of each `upstreams[].max_connections`, of `max_websockets`, and of `approvals.max_pending` and `approvals.max_held_bytes` that one key may use.",
      { minimum: 1, maximum: 100, default: 25 },
    ),
    tenant_share_percent: integer(
      "Percentage of `mcp_gateway.max_sessions`, of each `upstreams[].max_connections` and of `max_websockets` that all keys of one tenant may use together. A gateway with one tenant can have 100.",
      { minimum: 1, maximum: 100, default: 50 },
    ),
    admin_requests_per_minute: integer(
      "Requests of one key to the admin port per minute, as a token bucket. Health and metrics do not count.",
      { minimum: 1, maximum: 1_000_000, default: 6_000 },
    ),
    admin_unauthenticated_per_minute: integer(
      "Requests without a valid key to the admin port, per address and minute, as a token bucket. Requests with a valid key are not affected.",
      { minimum: 1, maximum: 1_000_000, default: 600 },
    ),
    drain_ms: integer("Time for requests in flight to finish when the gateway stops.", {
      minimum: 0,
      maximum: 3_600_000,
      default: 15_000,
    }),
  },
);

export const logSchema = object("The log on standard error.", {
  level: enumeration("Lowest severity that is logged.", ["debug", "info", "warn", "error", "silent"], {
    default: "info",
  }),
});
