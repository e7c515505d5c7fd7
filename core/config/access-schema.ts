export const listenSchema = {
  type: "object",
  description: "Where the gateway listens, and which browsers and names may reach it.",
  fields: {
    host: {
      type: "string",
      format: "listen_host",
      default: "127.0.0.1",
      description:
        "Address of the gateway port. A non-loopback one needs `keys`, `mcp_gateway.require_auth: true` and `listen.allowed_hosts`.",
    },
    admin_host: {
      type: "string",
      format: "listen_host",
      default: "127.0.0.1",
      description:
        "Address of the admin and metrics ports. A non-loopback one needs the same as `host`; keep it off public networks.",
    },
    gateway_port: {
      type: "integer",
      min: 0,
      max: 65_535,
      default: 8080,
      description: "Port for agents. 0 takes any free port.",
    },
    admin_port: {
      type: "integer",
      min: 0,
      max: 65_535,
      default: 8081,
      description: "Port for operators. Never expose it publicly. 0 takes any free port.",
    },
    metrics_port: {
      type: "integer",
      min: 0,
      max: 65_535,
      default: 8082,
      description: "Port for metrics. 0 takes any free port.",
    },
    allowed_hosts: {
      type: "list",
      default: [],
      whenEmpty: "leave the key out to allow loopback names only",
      description: "`Host` headers accepted. Left out: loopback names only.",
      of: { type: "string", format: "allowed_host", required: true, description: "A host, or `host:port`." },
    },
    allowed_origins: {
      type: "list",
      default: [],
      whenEmpty: "leave the key out to allow loopback origins only",
      description: "`Origin` headers accepted. Left out: loopback origins only.",
      of: { type: "string", format: "origin", required: true, description: "`scheme://host[:port]`." },
    },
  },
} as const;

export const keysSchema = {
  type: "list",
  default: [],
  whenEmpty: "leave the key out to have no keys",
  description: "API keys. Left out: nobody can authenticate.",
  of: {
    type: "object",
    description: "One key, as `gateway keys new` prints it. It has either `key_hash` or `key_env`.",
    fields: {
      id: {
        type: "string",
        format: "name",
        required: true,
        description: "Name of the key in logs and evidence. `anonymous` is taken.",
      },
      tenant: { type: "string", format: "name", required: true, description: "The tenant the key belongs to." },
      role: {
        type: "choice",
        values: ["admin", "operator", "viewer"],
        required: true,
        description: "What the key may do in its tenant.",
      },
      key_hash: { type: "string", format: "key_hash", default: null, description: "Hash of the key." },
      key_env: {
        type: "string",
        format: "variable",
        default: null,
        description: "Environment variable that holds the key: 32 to 512 characters.",
      },
    },
  },
} as const;

export const mcpGatewaySchema = {
  type: "object",
  description: "The MCP endpoint.",
  fields: {
    require_auth: {
      type: "boolean",
      default: true,
      description:
        "Every MCP request needs a key. False needs `mcp_gateway.anonymous_tenant`, and leaves out `/sse`, which always needs one.",
    },
    anonymous_tenant: {
      type: "string",
      format: "name",
      default: null,
      description: "Tenant of callers without a key. Without effect while `require_auth` is true.",
    },
    meta_passthrough: {
      type: "list",
      default: [],
      description: "Further `_meta` keys that reach the upstream. They become part of what policy judges.",
      of: { type: "string", format: "meta_key", required: true, description: "A `_meta` key." },
    },
    max_sessions: {
      type: "integer",
      min: 1,
      max: 100_000,
      default: 1000,
      description: "MCP sessions and connections to `/sse` open at once, together. One more is refused.",
    },
    session_idle_ms: {
      type: "integer",
      min: 1000,
      max: 86_400_000,
      default: 1_800_000,
      description: "An MCP session unused for so long is closed; a connection to `/sse` lives while it is connected.",
    },
  },
} as const;
