import { sqlDialects } from "../action/action-fact.ts";
import { capabilities } from "../action/capability.ts";
import { decisions } from "../action/decision.ts";
import { directProtocols, phases } from "../action/envelope.ts";
import { modes } from "../action/policy.ts";
import { enumeration, flag, integer, jsonObject, list, map, object, onlyWhere, optional, string } from "./schema.ts";

/** The engines beside packs and plugins. */
export const engineTypes = ["cedar", "rego", "opa-server", "cedar-agent"] as const;
export type EngineType = (typeof engineTypes)[number];
/** The engines whose policies are on another server. */
const serverEngines = ["opa-server", "cedar-agent"] as const satisfies readonly EngineType[];
export type ServerEngineType = (typeof serverEngines)[number];

/** The events of approvals that a webhook can receive. */
export const noticeTypes = ["approval.pending", "approval.approved", "approval.denied", "approval.expired"] as const;

export const policySchema = object("Policies, and the default decision.", {
  packs: list(
    "Policy packs, in any order: the strictest decision holds.",
    object("One pack.", {
      path: string("The pack's folder, relative to the configuration file's folder.", { format: "path" }),
      mode: enumeration("`shadow`: recorded, but without effect.", modes, { default: "enforce" }),
      settings: jsonObject("Values for the settings that the pack declares.", { default: {} }),
      shadow_rules: list(
        "Rules of the pack that are recorded, but without effect.",
        string("A rule id, or a glob with `*`.", { format: "rule_glob" }),
        { default: [], whenEmpty: "leave the key out to enforce every rule as the pack states" },
      ),
    }),
    { default: [], whenEmpty: "leave the key out to have no packs" },
  ),
  plugins: list(
    "Plugins: WASM modules in a sandbox, in any order: the strictest decision of packs and plugins holds.",
    object("One plugin.", {
      path: string("The plugin's folder, relative to the configuration file's folder.", { format: "path" }),
      mode: enumeration("`shadow`: recorded, but without effect.", modes, { default: "enforce" }),
      phases: list(
        "Phases in which the plugin is called: listed tools, calls, and outputs.",
        enumeration("One phase.", phases),
        { default: [...phases], whenEmpty: "leave the key out to call the plugin in every phase" },
      ),
      taints: list(
        "Taints, at most 8, that a finding about an input or output adds to the session, in either mode.",
        string("One word.", { format: "taint" }),
        { default: [] },
      ),
      settings: jsonObject("Values for the settings that the plugin declares.", { default: {} }),
    }),
    { default: [], whenEmpty: "leave the key out to have no plugins" },
  ),
  engines: list(
    "Policies in other languages, in any order: the strictest decision of all policies holds. `core/engine/README.md` describes their input.",
    object("One engine.", {
      type: enumeration(
        "`cedar`: a folder of Cedar policies with their schema. `rego`: a folder with a module that OPA made of Rego. `opa-server`, `cedar-agent`: a folder that says how to ask such a server.",
        engineTypes,
      ),
      path: string("The folder, relative to the configuration file's folder.", { format: "path" }),
      url: onlyWhere(
        "type",
        serverEngines,
        string("The server, without `/v1/…`. With `token_env`: https:, or this machine.", { format: "url" }),
      ),
      token_env: onlyWhere(
        "type",
        serverEngines,
        optional(
          string("Environment variable that holds the server's bearer token. Left out: none is sent.", {
            format: "variable",
          }),
        ),
      ),
      mode: enumeration("`shadow`: recorded, but without effect.", modes, { default: "enforce" }),
      phases: list(
        "Phases in which the engine is asked: listed tools, calls, and outputs.",
        enumeration("One phase.", phases),
        { default: ["input"], whenEmpty: "leave the key out to judge calls alone" },
      ),
    }),
    { default: [], whenEmpty: "leave the key out to have no engines" },
  ),
  plugin_workers: integer(
    "Threads for plugin calls that take longer than about a millisecond. With two or more, no single plugin or tenant can occupy them all.",
    { minimum: 1, maximum: 64, default: 2 },
  ),
  default_decision: enumeration(
    "Decision on actions that no policy matches. `allow` requires a pack in mode `enforce`.",
    decisions,
    {
      default: "block",
    },
  ),
  deadline_ms: integer(
    "Time for a policy to answer; after it, the decision is `block`. It begins when a plugin's call has a thread; for that it waits at most eight times as long.",
    { minimum: 1, maximum: 60_000, default: 250 },
  ),
});

export const extensionsSchema = object("Signatures of packs, plugins and engines.", {
  strict: flag(
    "Load only extensions that `trust_policy` trusts. False: untrusted ones are loaded too, and marked in log and evidence.",
    { default: false },
  ),
  trust_policy: optional(
    string("Trust policy: the file that lists trusted signers, relative to the configuration file's folder.", {
      format: "path",
    }),
  ),
});

export const sessionsSchema = object(
  "Session state, automatic stops, and the tenant that may stop the whole gateway. Operators can stop and release sessions at any time.",
  {
    gateway_tenant: optional(
      string("Tenant whose admins may stop the whole gateway over the admin API, and release it. Left out: nobody.", {
        format: "name",
      }),
    ),
    max_active: integer(
      "Sessions whose latest actions are kept in memory. Beyond that, the least recently active one is evicted: its risk, taints and counts stay in the store.",
      { minimum: 100, maximum: 1_000_000, default: 10_000 },
    ),
    idle_retention_days: integer(
      "Days without an action after which a session's state is deleted, taints included, unless the session is stopped. Its evidence stays.",
      { minimum: 1, maximum: 3_650, default: 30 },
    ),
    risk: object("Risk of a session: findings raise it, and it decays over time.", {
      kill_at: integer("Risk at which a session is stopped until an operator or admin releases it. 0: never.", {
        minimum: 0,
        maximum: 1_000,
        default: 80,
      }),
      window_seconds: integer("Time in which a risk of `kill_at` decays to zero.", {
        minimum: 1,
        maximum: 604_800,
        default: 1_800,
      }),
      mode: enumeration("`shadow`: sessions that would be stopped are counted and not stopped.", modes, {
        default: "enforce",
      }),
    }),
    drift: object("Actions that depart from the manifest of their session's task.", {
      mode: enumeration("Mode of manifests that name none. `shadow`: departures are only recorded.", modes, {
        default: "enforce",
      }),
      decision: enumeration(
        "Decision on an unexpected tool, resource or write domain. Excess actions and actions of a finished task are blocked.",
        ["review", "block"],
        { default: "review" },
      ),
    }),
    require_task: flag(
      "Block every action of a session that works on no task: without a manifest for it, and without a task reference.",
      { default: false },
    ),
    task_signers: list(
      "Signers whose references bind a session to a task.",
      object("One signer.", {
        id: string("Name of the signer in evidence.", { format: "name" }),
        tenant: string("Tenant whose sessions the signer may bind.", { format: "name" }),
        public_key: string("An Ed25519 public key, as `gateway pack keys new` prints it.", { format: "public_key" }),
      }),
      { default: [], whenEmpty: "leave the key out to accept no references" },
    ),
    review_flood: object("Stops a session that causes too many reviews, until an operator or admin releases it.", {
      reviews: integer("New reviews that a session may cause within the window; the next one stops it. 0: unlimited.", {
        minimum: 0,
        maximum: 10_000,
        default: 5,
      }),
      window_seconds: integer("Length of the window.", { minimum: 1, maximum: 86_400, default: 300 }),
    }),
  },
);

export const ticketsSchema = object(
  "Capability tickets: permissions that operators grant a principal ahead of time, for rules with `require_ticket`.",
  {
    default_ttl_seconds: integer("Lifetime of a ticket whose issuer states none; at most `max_ttl_seconds`.", {
      minimum: 1,
      maximum: 604_800,
      default: 300,
    }),
    max_ttl_seconds: integer("Longest lifetime of a ticket.", { minimum: 1, maximum: 604_800, default: 3_600 }),
    max_live: integer("Unexpired tickets of one tenant. Further ones are refused.", {
      minimum: 1,
      maximum: 100_000,
      default: 1_000,
    }),
    allow_self_issue: flag("Let operators issue tickets to their own principal.", { default: false }),
  },
);

export const approvalsSchema = object("Review of held actions, and webhooks about it.", {
  review_seconds: integer(
    "Time to review a held action. After it, the approval expires and the action has to be attempted again.",
    {
      minimum: 1,
      maximum: 604_800,
      default: 1_800,
    },
  ),
  use_seconds: integer("Time to use an approval after it is given.", { minimum: 1, maximum: 86_400, default: 900 }),
  max_pending: integer("Pending and approved approvals of one tenant. Further ones are refused.", {
    minimum: 1,
    maximum: 100_000,
    default: 1_000,
  }),
  max_held_bytes: integer(
    "Bytes of all held actions of one tenant, arguments included. Actions beyond it are refused.",
    {
      minimum: 1_024,
      maximum: 1_073_741_824,
      default: 67_108_864,
    },
  ),
  allow_self_review: flag("Let the requester of an action approve it.", { default: false }),
  allow_break_glass: flag("Let an `admin` approve alone and at once (break-glass); a post-mortem stays pending.", {
    default: false,
  }),
  hold_seconds: integer("Time that a held tool call waits for its review before it is answered. 0: answered at once.", {
    minimum: 0,
    maximum: 45,
    default: 0,
  }),
  review_url: optional(
    string(
      "Review page, sent to clients that can open a URL. `{id}` stands for the approval's id. Left out: the console, at `console.public_url`, or on this machine where `listen.admin_host` is of it.",
      { format: "url" },
    ),
  ),
  webhooks: list(
    "Receivers of signed notices, as Standard Webhooks defines them. A notice grants no permission.",
    object("One receiver.", {
      name: string("Name of the webhook. Unique.", { format: "name" }),
      tenant: string("Tenant whose approvals it is notified of; one that `keys` names.", { format: "name" }),
      url: string("URL that notices are posted to. Redirects are not followed.", { format: "webhook_url" }),
      secrets_env: list(
        "Signing secrets: each notice carries a signature of each, so that they can be rotated.",
        string("Environment variable that holds a secret: `whsec_` and the base64 of 24 to 64 bytes.", {
          format: "variable",
        }),
        { whenEmpty: "without a secret, receivers cannot detect forged notices" },
      ),
      events: list("Events that it receives.", enumeration("An event.", noticeTypes), {
        default: [...noticeTypes],
        whenEmpty: "leave the key out to send all",
      }),
      timeout_ms: integer("Time for one attempt, from connecting to the response.", {
        minimum: 100,
        maximum: 60_000,
        default: 10_000,
      }),
      max_attempts: integer(
        "Attempts, 5 s to 1 h apart, before a notice becomes a dead letter. 20 attempts take five to ten hours.",
        { minimum: 1, maximum: 100, default: 20 },
      ),
    }),
    { default: [] },
  ),
});

export const hooksSchema = object("Agents that act by themselves, and ask the gateway before they do.", {
  max_wait_seconds: integer(
    "Longest time that a held action waits for its review, where the agent asks to wait. 0: answered at once.",
    { minimum: 0, maximum: 600, default: 300 },
  ),
  capabilities: list(
    "Capability of each action, by protocol, tool and target; the first entry that fits. It is final. Left out: `execute`, and for the tools that a coding agent has by itself as `core/gateway/hook/README.md` lists them. The names are those that the agent states.",
    object("One statement.", {
      protocol: enumeration("Protocol of the action.", directProtocols),
      tool: string("A name, or a glob with `*`.", { format: "action_glob" }),
      target: string("A name, or a glob with `*`.", { format: "action_glob", default: "*" }),
      capability: enumeration("The capability.", capabilities),
    }),
    { default: [] },
  ),
  dialects: list(
    "SQL dialect of actions of protocol `sql`, by tool and target; the first entry that fits. Left out: a statement is read in every dialect, whatever the agent says, and has the effect `unknown` unless it can be read in all of them.",
    object("One statement.", {
      tool: string("A name, or a glob with `*`.", { format: "action_glob" }),
      target: string("A name, or a glob with `*`.", { format: "action_glob", default: "*" }),
      dialect: enumeration("The dialect.", sqlDialects),
    }),
    { default: [] },
  ),
});

export const evidenceSchema = object("Records of actions, and their witnesses.", {
  store_values: flag(
    "Keep arguments and outputs, encrypted and apart from the chain. False: only commitments are kept, so that a known value can be proven.",
    { default: true },
  ),
  store_labels: flag(
    "Keep the labels that clients give their sessions, unencrypted. False: only session ids are kept.",
    { default: true },
  ),
  redact_fields: list(
    "Members of arguments and outputs whose values are never kept: `<tool>:<member>`, with `*` as a wildcard.",
    string("One pattern.", { format: "field_glob" }),
    { default: [] },
  ),
  witnesses: list(
    "Witnesses that keep the head of each chain elsewhere, so that cutting, replacing or removing a chain is detected.",
    object("One witness.", {
      name: string("Name of the witness. Unique.", { format: "name" }),
      type: enumeration("`file`: a folder on other storage. `http`: a server that keeps notes. `git`: a repository.", [
        "file",
        "http",
        "git",
      ]),
      path: onlyWhere(
        "type",
        ["file"],
        string("Folder, relative to the configuration file's folder. Created if missing.", { format: "path" }),
      ),
      url: onlyWhere(
        "type",
        ["http"],
        string("`POST <url>/<chain>` stores a note, `GET` returns the latest one, or 404.", { format: "url" }),
      ),
      headers_env: onlyWhere(
        "type",
        ["http"],
        map(
          "Headers with secret values.",
          "header_name",
          string("Environment variable that holds the complete value, including `Bearer `.", { format: "variable" }),
          { default: {} },
        ),
      ),
      repository: onlyWhere(
        "type",
        ["git"],
        string("The repository, relative to the configuration file's folder. Notes go to its branch `evidence`.", {
          format: "path",
        }),
      ),
      interval_ms: integer("Time between notes. The witness cannot detect changes in between.", {
        minimum: 1_000,
        maximum: 86_400_000,
        default: 60_000,
      }),
    }),
    { default: [] },
  ),
  checkpoint_heartbeat_ms: integer("Time without a record after which a chain gets a heartbeat record. 0: never.", {
    minimum: 0,
    maximum: 604_800_000,
    default: 3_600_000,
  }),
  retention_days: integer(
    "Days after which records are pruned, checked at the start and every hour. What is not over stays. 0: they stay.",
    { minimum: 0, maximum: 36_500, default: 0 },
  ),
  retention_bytes: integer(
    "Bytes of a tenant's records with their private fields, about, beyond which the oldest are pruned. 0: any number.",
    { minimum: 0, maximum: 1_000_000_000_000_000, default: 0 },
  ),
});
