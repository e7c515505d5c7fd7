import { decisions } from "../action/decision.ts";
import { phases } from "../action/envelope.ts";
import { modes } from "../action/policy.ts";
import { choice, flag, integer, jsonObject, list, map, object, onlyWhere, optional, text } from "./schema.ts";

/** The events of approvals that a webhook can receive. */
export const noticeTypes = ["approval.pending", "approval.approved", "approval.denied", "approval.expired"] as const;

export const policySchema = object("What decides about actions.", {
  packs: list(
    "Policy packs. Their order does not matter: the strictest decision holds.",
    object("One pack.", {
      path: text("The pack's folder, relative to the configuration file's folder.", { format: "path" }),
      mode: choice("`shadow`: recorded, but without effect.", modes, { default: "enforce" }),
      settings: jsonObject("Values for the pack's settings. The pack says which there are.", { default: {} }),
      shadow_rules: list(
        "Rules of the pack that are recorded, but without effect.",
        text("A rule, or some.", { format: "rule_glob" }),
        { default: [], whenEmpty: "leave the key out to have every rule as the pack has it" },
      ),
    }),
    { default: [], whenEmpty: "leave the key out to have no packs" },
  ),
  plugins: list(
    "Plugins: WASM modules in a sandbox. Beside the packs, in any order: the strictest decision holds.",
    object("One plugin.", {
      path: text("The plugin's folder, relative to the configuration file's folder.", { format: "path" }),
      mode: choice("`shadow`: recorded, but without effect.", modes, { default: "enforce" }),
      phases: list(
        "Where the plugin is asked: about tools that are listed, calls, or answers.",
        choice("One phase.", phases),
        { default: [...phases], whenEmpty: "leave the key out to have the plugin asked everywhere" },
      ),
      taints: list(
        "At most 8 words that the session is tainted with where the plugin finds anything in what is sent or comes back, in either mode.",
        text("One word.", { format: "taint" }),
        { default: [] },
      ),
      settings: jsonObject("Values for the plugin's settings. The plugin says which there are.", { default: {} }),
    }),
    { default: [], whenEmpty: "leave the key out to have no plugins" },
  ),
  plugin_workers: integer(
    "Threads for calls of plugins that take longer than about a millisecond. With two or more, no plugin and no tenant holds them all.",
    { minimum: 1, maximum: 64, default: 2 },
  ),
  default_decision: choice("The decision where no policy speaks. `allow` needs a pack in mode `enforce`.", decisions, {
    default: "block",
  }),
  deadline_ms: integer("A policy without answer after so long has answered `block`.", {
    minimum: 1,
    maximum: 60_000,
    default: 250,
  }),
});

export const extensionsSchema = object("Who vouches for packs and plugins.", {
  strict: flag(
    "Load nothing that `trust_policy` does not trust. False: what is not trusted is loaded, and marked so in log and evidence.",
    { default: false },
  ),
  trust_policy: optional(
    text("File that says whose signatures are trusted, relative to the configuration file's folder.", {
      format: "path",
    }),
  ),
});

export const sessionsSchema = object(
  "What is watched of sessions, what stops one by itself, and who may stop everything. Operators stop and release sessions at any time.",
  {
    gateway_tenant: optional(
      text("Tenant whose admins may stop the whole gateway over the admin API, and release it. None: nobody may.", {
        format: "name",
      }),
    ),
    max_active: integer(
      "Sessions whose last actions are in memory. Of one more, the one that was silent longest is folded: its risk, taints and counts stay in the store.",
      { minimum: 100, maximum: 1_000_000, default: 10_000 },
    ),
    idle_retention_days: integer(
      "A session that attempted nothing for so long is forgotten, its taints too, unless it is stopped. Its evidence stays.",
      { minimum: 1, maximum: 3_650, default: 30 },
    ),
    risk: object("The risk of a session: what policy finds in its actions adds to it, and time drains it.", {
      kill_at: integer(
        "A session whose risk comes to this is stopped until an operator or admin releases it. 0: none is.",
        { minimum: 0, maximum: 1_000, default: 80 },
      ),
      window_seconds: integer("How long a risk of `kill_at` takes to drain to nothing.", {
        minimum: 1,
        maximum: 604_800,
        default: 1_800,
      }),
      mode: choice("`shadow`: a session that would be stopped is counted, and goes on.", modes, {
        default: "enforce",
      }),
    }),
    drift: object("What becomes of actions that depart from the manifest of their session's task.", {
      mode: choice("Of manifests that name no mode. `shadow`: departures are only recorded.", modes, {
        default: "enforce",
      }),
      decision: choice(
        "Of a tool, a resource or a write domain that is not expected. Too many actions, and those of a task that is over, are blocked.",
        ["review", "block"],
        { default: "review" },
      ),
    }),
    task_signers: list(
      "Whose signed references bind a session to a task.",
      object("One signer.", {
        id: text("What evidence calls the signer.", { format: "name" }),
        tenant: text("Whose sessions it may bind.", { format: "name" }),
        public_key: text("An Ed25519 public key, as `gateway pack keys new` prints it.", { format: "public_key" }),
      }),
      { default: [], whenEmpty: "leave the key out to accept no references" },
    ),
    review_flood: object(
      "A session that asks for too many reviews is stopped until an operator or admin releases it.",
      {
        reviews: integer(
          "New reviews that a session may ask for within the window; the next one stops it. 0: any number.",
          { minimum: 0, maximum: 10_000, default: 5 },
        ),
        window_seconds: integer("How long a review counts.", { minimum: 1, maximum: 86_400, default: 300 }),
      },
    ),
  },
);

export const ticketsSchema = object(
  "Capability tickets: what operators permit a principal to do ahead of time, where a rule says `require_ticket`.",
  {
    default_ttl_seconds: integer(
      "How long a ticket lasts unless whoever issues it says otherwise; at most `max_ttl_seconds`.",
      { minimum: 1, maximum: 604_800, default: 300 },
    ),
    max_ttl_seconds: integer("The longest that a ticket may last.", { minimum: 1, maximum: 604_800, default: 3_600 }),
    max_live: integer("Tickets of one tenant that have not expired. One more is refused.", {
      minimum: 1,
      maximum: 100_000,
      default: 1_000,
    }),
    allow_self_issue: flag("Whether an operator may issue a ticket to their own principal.", { default: false }),
  },
);

export const approvalsSchema = object("Review of held actions, and who is told of them.", {
  review_seconds: integer("Time to review a held action. Then it expires and has to be attempted again.", {
    minimum: 1,
    maximum: 604_800,
    default: 1_800,
  }),
  use_seconds: integer("Time to use an approval once it is given.", { minimum: 1, maximum: 86_400, default: 900 }),
  max_pending: integer("Approvals of a tenant that are pending or approved. One more is refused.", {
    minimum: 1,
    maximum: 100_000,
    default: 1_000,
  }),
  max_held_bytes: integer("Held actions of a tenant together, arguments and all. What does not fit is refused.", {
    minimum: 1_024,
    maximum: 1_073_741_824,
    default: 67_108_864,
  }),
  allow_self_review: flag("Whether whoever asked for an action may approve it.", { default: false }),
  allow_break_glass: flag("Whether an `admin` may approve alone and at once, and owes a post-mortem.", {
    default: false,
  }),
  hold_seconds: integer(
    "How long a held tool call waits for its review before it is answered. 0: it is answered at once.",
    { minimum: 0, maximum: 45, default: 0 },
  ),
  review_url: optional(
    text("Page where people review: clients that can open a URL are asked to. `{id}` stands for the approval's id.", {
      format: "url",
    }),
  ),
  webhooks: list(
    "Who is told, by signed HTTP requests as Standard Webhooks describes them. Being told grants nothing.",
    object("One receiver.", {
      name: text("Name of the webhook. Unique.", { format: "name" }),
      tenant: text("The tenant whose approvals it hears of. One that `keys` names.", { format: "name" }),
      url: text("Where notices are posted. No redirect is followed.", { format: "webhook_url" }),
      secrets_env: list(
        "Who signs: with more than one, each notice carries a signature of each, so that they can change.",
        text("Environment variable that holds a secret: `whsec_` and the base64 of 24 to 64 bytes.", {
          format: "variable",
        }),
        { whenEmpty: "a webhook without a secret cannot be told from a forgery" },
      ),
      events: list("What it is told of.", choice("A kind of event.", noticeTypes), {
        default: [...noticeTypes],
        whenEmpty: "leave the key out to tell all",
      }),
      timeout_ms: integer("Time for one attempt, from connecting to the answer.", {
        minimum: 100,
        maximum: 60_000,
        default: 10_000,
      }),
      max_attempts: integer(
        "Attempts, 5 s to 1 h apart, before a notice goes to the dead letters. 20 take five to ten hours.",
        { minimum: 1, maximum: 100, default: 20 },
      ),
    }),
    { default: [] },
  ),
});

export const evidenceSchema = object("What is kept of the actions, and who else keeps it.", {
  store_values: flag(
    "Keep arguments and answers, encrypted and apart from the chain. False: only what they were is provable.",
    { default: true },
  ),
  store_labels: flag(
    "Keep the labels that clients give their sessions, in the clear. False: a session has its id alone.",
    { default: true },
  ),
  redact_fields: list(
    "Members of arguments and answers whose values are never kept: `<tool>:<member>`, with `*` as in names.",
    text("One pattern.", { format: "field_glob" }),
    { default: [] },
  ),
  witnesses: list(
    "Who is told where each chain stands, so that none can be cut, replaced or removed unseen.",
    object("One witness.", {
      name: text("Name of the witness. Unique.", { format: "name" }),
      type: choice("`file`: a folder on other storage. `http`: a server that keeps notes. `git`: a repository.", [
        "file",
        "http",
        "git",
      ]),
      path: onlyWhere(
        "type",
        ["file"],
        text("The folder, relative to the configuration file's folder. Made where there is none.", { format: "path" }),
      ),
      url: onlyWhere(
        "type",
        ["http"],
        text("`POST <url>/<chain>` keeps a note, `GET` answers the latest one, or 404.", { format: "url" }),
      ),
      headers_env: onlyWhere(
        "type",
        ["http"],
        map(
          "Headers whose values are secret.",
          "header_name",
          text("Environment variable that holds the value, whole: `Bearer …` and all.", { format: "variable" }),
          { default: {} },
        ),
      ),
      repository: onlyWhere(
        "type",
        ["git"],
        text("The repository, relative to the configuration file's folder. Notes go to its branch `evidence`.", {
          format: "path",
        }),
      ),
      interval_ms: integer("Time from one note to the next. What happens in between, the witness cannot vouch for.", {
        minimum: 1_000,
        maximum: 86_400_000,
        default: 60_000,
      }),
    }),
    { default: [] },
  ),
  checkpoint_heartbeat_ms: integer("A chain without a record for so long gets a heartbeat. 0: none does.", {
    minimum: 0,
    maximum: 604_800_000,
    default: 3_600_000,
  }),
});
