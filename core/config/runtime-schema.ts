export const dataDirSchema = {
  type: "string",
  format: "path",
  default: "./data",
  description: "Folder of the state and the evidence, relative to the configuration file's folder.",
} as const;

export const stateSchema = {
  type: "object",
  description: "Persistence.",
  fields: {
    enabled: {
      type: "boolean",
      default: true,
      description: "Keep state and evidence on disk. False: in memory, gone at the next start.",
    },
  },
} as const;

export const policySchema = {
  type: "object",
  description: "What decides about actions.",
  fields: {
    packs: {
      type: "list",
      default: [],
      whenEmpty: "leave the key out to have no packs",
      description: "Policy packs. Their order does not matter: the strictest decision holds.",
      of: {
        type: "object",
        description: "One pack.",
        fields: {
          path: {
            type: "string",
            format: "path",
            required: true,
            description: "The pack's folder, relative to the configuration file's folder.",
          },
          mode: {
            type: "choice",
            values: ["enforce", "shadow"],
            default: "enforce",
            description: "`shadow`: recorded, but without effect.",
          },
          settings: {
            type: "json",
            default: {},
            description: "Values for the pack's settings. The pack says which there are.",
          },
          shadow_rules: {
            type: "list",
            default: [],
            whenEmpty: "leave the key out to have every rule as the pack has it",
            description: "Rules of the pack that are recorded, but without effect.",
            of: { type: "string", format: "rule_glob", required: true, description: "A rule, or some." },
          },
        },
      },
    },
    plugins: {
      type: "list",
      default: [],
      whenEmpty: "leave the key out to have no plugins",
      description: "Plugins: WASM modules in a sandbox. Beside the packs, in any order: the strictest decision holds.",
      of: {
        type: "object",
        description: "One plugin.",
        fields: {
          path: {
            type: "string",
            format: "path",
            required: true,
            description: "The plugin's folder, relative to the configuration file's folder.",
          },
          mode: {
            type: "choice",
            values: ["enforce", "shadow"],
            default: "enforce",
            description: "`shadow`: recorded, but without effect.",
          },
          phases: {
            type: "list",
            default: ["list", "input", "output"],
            whenEmpty: "leave the key out to have the plugin asked everywhere",
            description: "Where the plugin is asked: about tools that are listed, calls, or answers.",
            of: { type: "choice", values: ["list", "input", "output"], description: "One phase." },
          },
          taints: {
            type: "list",
            default: [],
            description:
              "At most 8 words that the session is tainted with where the plugin finds anything in what is sent or comes back, in either mode.",
            of: { type: "string", format: "taint", required: true, description: "One word." },
          },
          settings: {
            type: "json",
            default: {},
            description: "Values for the plugin's settings. The plugin says which there are.",
          },
        },
      },
    },
    plugin_workers: {
      type: "integer",
      min: 1,
      max: 64,
      default: 2,
      description:
        "Threads for calls of plugins that take longer than about a millisecond. With two or more, no plugin and no tenant holds them all.",
    },
    default_decision: {
      type: "choice",
      values: ["allow", "review", "block"],
      default: "block",
      description: "The decision where no policy speaks. `allow` needs a pack in mode `enforce`.",
    },
    deadline_ms: {
      type: "integer",
      min: 1,
      max: 60_000,
      default: 250,
      description: "A policy without answer after so long has answered `block`.",
    },
  },
} as const;

export const limitsSchema = {
  type: "object",
  description: "Bounds of requests, answers and connections. Beyond one is a clear error, never a truncation.",
  fields: {
    body_bytes: {
      type: "integer",
      min: 1024,
      max: 268_435_456,
      default: 4_194_304,
      description: "Request body.",
    },
    json_depth: {
      type: "integer",
      min: 4,
      max: 512,
      default: 64,
      description: "Arrays and objects inside one another.",
    },
    json_nodes: {
      type: "integer",
      min: 100,
      max: 10_000_000,
      default: 100_000,
      description: "Arrays, objects and members together.",
    },
    json_string_length: {
      type: "integer",
      min: 256,
      max: 268_435_456,
      default: 4_194_304,
      description: "One string, in UTF-16 code units.",
    },
    upstream_reply_bytes: {
      type: "integer",
      min: 1024,
      max: 268_435_456,
      default: 16_777_216,
      description: "One answer of an upstream.",
    },
    headers_ms: {
      type: "integer",
      min: 100,
      max: 600_000,
      default: 10_000,
      description: "Time for a client to send its headers.",
    },
    body_ms: {
      type: "integer",
      min: 100,
      max: 3_600_000,
      default: 25_000,
      description: "Time for a client to send the whole request. At least `headers_ms`.",
    },
    keep_alive_ms: {
      type: "integer",
      min: 100,
      max: 3_600_000,
      default: 65_000,
      description: "A connection of a client unused for so long is closed.",
    },
    unread_ms: {
      type: "integer",
      min: 100,
      max: 3_600_000,
      default: 30_000,
      description:
        "A client that takes nothing for so long of what waits for it is cut off, at the latest after twice that.",
    },
    max_connections: {
      type: "integer",
      min: 1,
      max: 1_000_000,
      default: 10_000,
      description: "Connections of clients at once, on each port.",
    },
    max_websockets: {
      type: "integer",
      min: 0,
      max: 100_000,
      default: 1_000,
      description: "Connections to `/v1/ws` at once. One more is refused. 0: none is served.",
    },
    admin_requests_per_minute: {
      type: "integer",
      min: 1,
      max: 1_000_000,
      default: 6_000,
      description: "Requests of one key to the admin port, refilled evenly. Health and metrics do not count.",
    },
    admin_strangers_per_minute: {
      type: "integer",
      min: 1,
      max: 1_000_000,
      default: 600,
      description:
        "Requests without a good key to the admin port, from one address, refilled evenly. A good key is let in nonetheless.",
    },
    drain_ms: {
      type: "integer",
      min: 0,
      max: 3_600_000,
      default: 15_000,
      description: "Time at a stop for what is in flight to end.",
    },
  },
} as const;

export const logSchema = {
  type: "object",
  description: "The log on standard error.",
  fields: {
    level: {
      type: "choice",
      values: ["debug", "info", "warn", "error", "silent"],
      default: "info",
      description: "The least severe entries to write.",
    },
  },
} as const;
