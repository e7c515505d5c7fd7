import type { Capability } from "./capability.ts";

/**
 * The effect of an action, weakest first: its strictest part decides. `unknown`: nobody can tell, so no shipped rule allows
 * it.
 */
export const actionEffects = ["read", "write", "delete", "execute", "network", "unknown"] as const;
export type ActionEffect = (typeof actionEffects)[number];

/** Returns the strictest of them; `read` where there are none. */
export function strictestEffect(parts: Iterable<ActionEffect>): ActionEffect {
  let rank = 0;
  for (const part of parts) rank = Math.max(rank, actionEffects.indexOf(part));
  return actionEffects[rank] ?? "unknown";
}

/** The effect of an action of which nothing is known but the capability of its tool. */
export const capabilityEffect: Readonly<Record<Capability, ActionEffect>> = {
  read: "read",
  generate: "network",
  network: "network",
  write: "write",
  execute: "execute",
  approve: "execute",
  deploy: "execute",
  delete: "delete",
};

/** The kinds of facts that an operator can state about an argument. */
export const factKinds = ["shell", "git", "sql", "url", "path", "address"] as const;
export type FactKind = (typeof factKinds)[number];

export const sqlDialects = ["postgresql", "mysql", "sqlite", "mssql"] as const;
export type SqlDialect = (typeof sqlDialects)[number];

/** `every`: nobody who may be believed states the dialect, so that all readers must understand the text. */
export type StatedDialect = SqlDialect | "every";

/**
 * The operator's statement of what the arguments of a tool are. Each place is the name of an argument, or a JSON Pointer in which
 * `*` stands for every item of a list.
 */
export interface FactStatement {
  /** A command line for a POSIX shell or bash, or a program with its arguments as a list. */
  readonly shell?: string | undefined;
  /** The arguments of git, as one text or as a list, with or without `git` before them. */
  readonly git?: string | undefined;
  readonly sql?: string | undefined;
  /** The dialect of `sql`; without one its effect is unknown. */
  readonly dialect?: StatedDialect | undefined;
  readonly url?: readonly string[] | undefined;
  readonly path?: readonly string[] | undefined;
  /** The absolute folder that every path of `path` lies in, and that relative ones start at. */
  readonly root?: string | undefined;
  /** Mail addresses, accounts, handles, telephone numbers: whom the action is for. */
  readonly address?: readonly string[] | undefined;
}

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

export const urlZones = ["public", "private", "loopback", "link_local", "metadata", "reserved", "name"] as const;
export type UrlZone = (typeof urlZones)[number];

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

/** Hosts and paths that an action names: at most 20 of each. */
export interface ActionPlaces {
  /** Hosts, with the port where one is written. */
  readonly hosts: readonly string[];
  /** Absolute and home-relative paths, and those that climb. */
  readonly paths: readonly string[];
  /** True where there are, or may be, others. */
  readonly more: boolean;
}

/**
 * The facts of an action, found before any policy sees it. A kind is there where its arguments were stated, or found.
 * INVARIANT: evidence keeps them: a member of a later version is optional, and no member changes its meaning.
 */
export interface ActionFacts extends ActionPlaces {
  /** The effect of `shell`, `git` and `sql` where stated, else of the capability of its tool. */
  readonly effect: ActionEffect;
  readonly shell?: ShellFacts;
  readonly git?: readonly GitFact[];
  readonly sql?: SqlFacts;
  readonly url?: readonly UrlFact[];
  readonly path?: readonly PathFact[];
  readonly address?: readonly AddressFact[];
  /** In the answer of a model: the calls of stated tools that it asks for. All other facts are those of the calls together. */
  readonly calls?: readonly CallFact[];
}
