import type { Json, JsonObject } from "./json.ts";

export type Protocol = "mcp" | "http" | "shell" | "sql" | "git" | "model";
/** `list`: may this tool be seen; `input`: may this action run; `output`: may this answer be returned. */
export type Phase = "list" | "input" | "output";
export type Capability = "read" | "generate" | "network" | "write" | "execute" | "approve" | "deploy" | "delete";
export type Role = "admin" | "operator" | "viewer";

/** The status of the ticket presented with an action; all but `valid` are reasons for refusing it. */
export type TicketStanding =
  | "valid"
  | "forged"
  | "unknown"
  | "expired"
  | "not_yet"
  | "other_principal"
  | "other_tenant"
  | "out_of_scope"
  | "revoked"
  | "used_up"
  | "replayed";

/** One attempted action, as every policy sees it: what a plugin judges. */
export interface ActionEnvelope {
  readonly version: 1;
  /** UUIDv7; the same in all phases of one action. */
  readonly id: string;
  /** RFC 3339, milliseconds, UTC. */
  readonly time: string;
  readonly tenant: string;
  readonly principal: { readonly id: string; readonly role: Role; readonly keyId: string };
  readonly session: { readonly id: string; readonly transport: "http" | "sse"; readonly label?: string };
  readonly task: string | null;
  readonly protocol: Protocol;
  readonly phase: Phase;
  readonly tool: string;
  /** The upstream's name. */
  readonly target: string;
  readonly capability: Capability;
  readonly arguments: Json;
  /** The client's continuation of an interrupted request. */
  readonly continuation?: JsonObject;
  /** The upstream's answer; in phase `output` only. */
  readonly output?: Json;
  /** The tool as its upstream described it. */
  readonly tool_definition?: ToolDefinition;
  /** True where the operator marked the tool as a source of untrusted content. */
  readonly untrusted?: true;
  /** The capability ticket that came with it. */
  readonly ticket?: { readonly id: string | null; readonly standing: TicketStanding };
  /** The client's self-declared name and version, and its address. */
  readonly client: { readonly name: string; readonly version: string; readonly address: string };
  /** The hosts and paths that its arguments reach. Absent for model requests, which reach nowhere by themselves. */
  readonly facts?: ActionFacts;
  /** The state of its session before it. */
  readonly session_state?: SessionState;
}

/**
 * Reasons to withhold a definition. `changed`: it is not the pinned one. `renamed`: it is new, while a pinned tool of its
 * upstream that it resembles is gone. `shadowing`, `look_alike`: its name is, or resembles, that of another upstream's tool, or
 * its text gives orders about one. `instructions`: its text addresses the model. `unreviewed`, `denied`: nobody approved it, or
 * somebody denied it. `limit`: it is too large, or one too many.
 */
export type DefinitionFinding =
  | "changed"
  | "renamed"
  | "shadowing"
  | "look_alike"
  | "instructions"
  | "unreviewed"
  | "denied"
  | "limit";

/** The tool as its upstream described it: whole in phase `list`, else digest and annotations alone. */
export interface ToolDefinition {
  /** `sha256:<hex>` over the RFC 8785 bytes of the definition. */
  readonly digest: string;
  readonly annotations: JsonObject;
  /** Present where the tool is hidden and its calls are blocked until a reviewer approves the definition. */
  readonly findings?: readonly DefinitionFinding[];
  readonly title?: string;
  readonly description?: string;
  readonly input_schema?: JsonObject;
  readonly output_schema?: JsonObject;
}

/** The effect of an action, weakest first. `unknown`: nobody can tell. */
export type ActionEffect = "read" | "write" | "delete" | "execute" | "network" | "unknown";

export type SqlDialect = "postgresql" | "mysql" | "sqlite" | "mssql";

/** A redirect of a shell command; `path` is null where it is computed. */
export interface ShellRedirect {
  readonly op: string;
  readonly path: string | null;
}

/** One program that a command line runs, without the wrappers around it. */
export interface ShellCommand {
  /** Its name without a folder; null where it is computed. */
  readonly name: string | null;
  /** Its words with the quotes undone, the name first; null for a word that is computed. */
  readonly argv: readonly (string | null)[];
  /** Programs that only run it, the outermost first: `sudo`, `env`, `timeout`, `xargs`, `sh`. */
  readonly wrappers: readonly string[];
  /** Names of the variables set for it alone. */
  readonly env: readonly string[];
  readonly effect: ActionEffect;
  readonly redirects: readonly ShellRedirect[];
  /** Hosts and paths among its words and redirects, hosts without a scheme included. */
  readonly hosts: readonly string[];
  readonly paths: readonly string[];
  readonly place: "top" | "pipe" | "substitution";
}

/** A command line. Every `effect` is `unknown` where `parsed` is false, or where two parsers do not agree. */
export interface ShellFacts {
  readonly parsed: boolean;
  /** True where a word, a name or a path is computed when the line runs. */
  readonly dynamic: boolean;
  /** True where commands, words or places are left out of the lists. */
  readonly more: boolean;
  readonly effect: ActionEffect;
  readonly commands: readonly ShellCommand[];
}

/** One run of git, stated as such or found in a command line. */
export interface GitFact {
  readonly subcommand: string | null;
  readonly options: readonly string[];
  /** Names and URLs of remotes, as written. */
  readonly remotes: readonly string[];
  readonly refs: readonly string[];
  /** True where it may overwrite or delete what others have: `--force`, `+ref`, `--mirror`, `--delete`. */
  readonly force: boolean;
  /** Keys set with `-c`, `--config-env` or `GIT_CONFIG_*`, in lower case. */
  readonly config_overrides: readonly string[];
  readonly effect: ActionEffect;
}

export interface SqlStatement {
  /** In lower case: `select`, `insert`, `update`, `delete`, `drop`, `truncate`, `copy`, `call`, `set`, … */
  readonly kind: string;
  readonly effect: ActionEffect;
  readonly tables: { readonly read: readonly string[]; readonly write: readonly string[] };
  /** Names of functions called, in lower case. */
  readonly functions: readonly string[];
  readonly has_where: boolean;
  /** True for a condition that holds for every row, such as `1 = 1`. */
  readonly where_is_constant: boolean;
  /** True where it writes its result into a table, a file or a program. */
  readonly into: boolean;
  /** True where it locks rows or tables. */
  readonly locking: boolean;
}

export interface SqlFacts {
  readonly parsed: boolean;
  /** Null where the operator states none. */
  readonly dialect: SqlDialect | null;
  readonly effect: ActionEffect;
  readonly statements: readonly SqlStatement[];
  readonly more: boolean;
}

export type UrlZone = "public" | "private" | "loopback" | "link_local" | "metadata" | "reserved" | "name";

export interface UrlFact {
  /** In lower case without the colon; empty where the text is no URL. */
  readonly scheme: string;
  /** As a client connects to it: lower case, `xn--…`, an address in its plain form. */
  readonly host: string;
  /** The address where the host is one, however it was written. */
  readonly address?: string;
  /** The zone of the address; `name` for a host that has to be looked up, unless the name itself says where it leads. */
  readonly zone: UrlZone;
  /** 0 where the scheme has no port of its own. */
  readonly port: number;
  readonly userinfo: boolean;
  /** True where two readers could disagree about it: other forms of an address, escapes, blanks, backslashes, mixed scripts. */
  readonly odd: boolean;
}

export interface PathFact {
  /** The path with escapes and `.` and `..` resolved; as it came where `odd`. */
  readonly plain: string;
  /** True where it certainly lies in the stated root; where none is stated, in `/`. */
  readonly inside: boolean;
  /** True where two readers could disagree about it, or it cannot be resolved. */
  readonly odd: boolean;
}

export interface AddressFact {
  readonly kind: "mail" | "account" | "handle" | "phone" | "other";
  /** In a form in which equal addresses are equal texts. */
  readonly plain: string;
  /** True for invisible characters, mixed scripts, comments or several addresses in one text. */
  readonly odd: boolean;
}

/** A tool call that a model's answer asks for. */
export interface CallFact {
  /** The name of the tool; empty where it cannot be read. */
  readonly tool: string;
  readonly effect: ActionEffect;
}

/** At most 20 hosts and paths, and whether there are more. A kind is there where its arguments were stated, or found. */
export interface ActionFacts {
  /** The one of its strictest part, or of its capability where nothing else is known. */
  readonly effect: ActionEffect;
  /** Hosts of URLs, with the port where one is written. */
  readonly hosts: readonly string[];
  /** Absolute and home-relative paths, and those that climb. */
  readonly paths: readonly string[];
  readonly more: boolean;
  readonly shell?: ShellFacts;
  readonly git?: readonly GitFact[];
  readonly sql?: SqlFacts;
  readonly url?: readonly UrlFact[];
  readonly path?: readonly PathFact[];
  readonly address?: readonly AddressFact[];
  /** In the answer of a model: the calls of stated tools that it asks for. All other facts are those of the calls together. */
  readonly calls?: readonly CallFact[];
}

export interface SessionState {
  /** Whole points; they drain with time. */
  readonly risk: number;
  /** Actions before this one that were let through, and those that are being judged beside it. */
  readonly actions: number;
  /** New reviews it asked for. */
  readonly reviews: number;
  /** The number of different tools it used; `new_tool`: this action's is not among them. */
  readonly tools: number;
  readonly new_tool: boolean;
  readonly taints: readonly Taint[];
  /** The hosts, paths and addresses of this action that an untrusted answer named first; absent where there are none. */
  readonly untrusted_values?: readonly string[];
  /** The percentage of a secret that actions carried away, this one included; absent for 0. */
  readonly secret_left?: number;
}

/** Content that the session read, which may influence everything after it. */
export interface Taint {
  /** `untrusted`, or the word of the rule that found it. */
  readonly name: string;
  /** The upstream, its tool, and the action it came with. */
  readonly target: string;
  readonly tool: string;
  readonly action: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The input of `evaluate`. */
export interface PluginInput {
  /** The author's defaults with the operator's values applied. */
  readonly settings: JsonObject;
  readonly action: ActionEnvelope;
}
