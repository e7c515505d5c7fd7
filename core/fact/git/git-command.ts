import { type ActionEffect, type GitFact, strictestEffect } from "../../action/action-fact.ts";

export interface GitReading {
  readonly fact: GitFact;
  readonly hosts: readonly string[];
}

const maxListed = 20;

/** Subcommands that read with every option but those of `strictOptions`. */
const readers = new Set(
  "status log diff show blame annotate ls-files ls-tree rev-parse rev-list describe shortlog cat-file merge-base name-rev for-each-ref show-ref count-objects check-ignore grep whatchanged cherry diff-tree diff-index version".split(
    " ",
  ),
);

/** Subcommands that list with these words alone. */
const lists: Readonly<Record<string, RegExp>> = {
  branch: /^(?:-a|-r|-v|-vv|-av|-avv|-rv|--all|--remotes|--list|--show-current|--verbose)$/,
  tag: /^(?:-l|-n|--list)$/,
  remote: /^(?:-v|--verbose)$/,
  stash: /^list$/,
  worktree: /^list$/,
  config: /^(?:-l|--list)$/,
};

const others: Readonly<Record<string, ActionEffect>> = {
  ...Object.fromEntries(
    "fetch clone pull push ls-remote send-email request-pull".split(" ").map((name) => [name, "network"]),
  ),
  ...Object.fromEntries(
    "add commit checkout switch restore merge cherry-pick revert mv init tag branch stash worktree apply am notes reset"
      .split(" ")
      .map((name) => [name, "write"]),
  ),
  ...Object.fromEntries("clean rm prune gc".split(" ").map((name) => [name, "delete"])),
  ...Object.fromEntries(
    "filter-branch bisect rebase submodule difftool mergetool gui hook daemon config"
      .split(" ")
      .map((name) => [name, "execute"]),
  ),
};

/** Long options that make any subcommand stricter; git takes every prefix of them. */
const strictOptions: Readonly<Record<string, ActionEffect>> = {
  "--output": "write",
  "--output-directory": "write",
  "--ext-diff": "execute",
  "--textconv": "execute",
  "--filters": "execute",
  "--open-files-in-pager": "execute",
  "--show-signature": "execute",
  "--upload-pack": "execute",
  "--receive-pack": "execute",
  "--exec": "execute",
  "--remote": "network",
  "--contents": "unknown",
};

/** Subcommands whose `-f` forces. Of another one that is known it is the name of a file, or nothing. */
const forcing = new Set(
  "push branch checkout switch clean fetch pull tag rm mv add reset worktree submodule notes rebase filter-branch".split(
    " ",
  ),
);
const forceOptions = ["--force", "--force-with-lease", "--mirror", "--delete", "--prune", "--hard"];

/** Reads the words after `git`, with the names of variables that are set for it. Never throws. */
export function readGit(argv: readonly (string | null)[], env: readonly string[]): GitReading {
  const texts = argv.map((text) => text ?? "");
  const overrides = env.filter((name) => name.startsWith("GIT_")).map((name) => name.toLowerCase());
  const { at, effect, configs } = readGlobals(texts);
  const subcommand = argv[at] ?? null;
  const words = texts.slice(at + 1);
  const end = words.indexOf("--");
  const options = (end === -1 ? words : words.slice(0, end)).filter((word) => word.startsWith("-") && word.length > 1);
  const operands = words.filter((word) => !word.startsWith("-"));
  const takesRemote = ["fetch", "clone", "pull", "push", "ls-remote"].includes(subcommand ?? "");
  const isForced =
    options.some((word) => isPrefixOf(word, forceOptions) || isForceCluster(subcommand, word)) ||
    (subcommand === "push" && operands.some((word) => /^[+:]/.test(word))) ||
    (subcommand === "push" && options.some((word) => /^-[a-z]*d/.test(word)));
  const all = [...operands.slice(0, takesRemote ? 1 : 0), ...options];
  const fact: GitFact = {
    subcommand,
    options: options.slice(0, maxListed),
    remotes: operands.slice(0, takesRemote ? 1 : 0),
    refs: operands.slice(takesRemote ? 1 : 0).slice(0, maxListed),
    force: isForced,
    config_overrides: [...overrides, ...configs].slice(0, maxListed),
    effect: strictestEffect([
      effect,
      overrides.length > 0 ? "execute" : "read",
      subcommandEffect(subcommand, words),
      ...options.map(optionEffect(subcommand)),
      ...(texts.some((word) => word.includes("::")) ? ["execute" as const] : []),
      ...(words.some((word) => asksSignature(subcommand, word)) ? ["execute" as const] : []),
      ...(argv.includes(null) ? ["unknown" as const] : []),
      ...(isForced ? ["delete" as const] : []),
    ]),
  };
  return { fact, hosts: takesRemote ? all.flatMap((word) => hostsOf(word)) : [] };
}

function readGlobals(texts: readonly string[]): { at: number; effect: ActionEffect; configs: readonly string[] } {
  const configs: string[] = [];
  for (let at = 0; at < texts.length; at += 1) {
    const text = texts[at] ?? "";
    if (!text.startsWith("-")) return { at, effect: configs.length > 0 ? "execute" : "read", configs };
    if (text === "--no-pager" || text === "--no-optional-locks" || text === "--literal-pathspecs") continue;
    if (text === "--version" && texts.length === 1) return { at: texts.length, effect: "read", configs };
    if (text !== "-c") return { at: texts.length, effect: "execute", configs };
    configs.push((texts[at + 1] ?? "").split("=", 1)[0]?.toLowerCase() ?? "");
    at += 1;
  }
  return { at: texts.length, effect: configs.length > 0 ? "execute" : "read", configs };
}

function subcommandEffect(subcommand: string | null, words: readonly string[]): ActionEffect {
  if (subcommand === null) return "unknown";
  if (readers.has(subcommand)) return "read";
  const list = Object.hasOwn(lists, subcommand) ? lists[subcommand] : undefined;
  const mayBeBare = ["branch", "tag", "remote"].includes(subcommand);
  if (list !== undefined && (words.length > 0 || mayBeBare) && words.every((word) => list.test(word))) return "read";
  if (subcommand === "stash" && ["drop", "clear", "pop"].includes(words[0] ?? "")) return "delete";
  return (Object.hasOwn(others, subcommand) ? others[subcommand] : undefined) ?? "unknown";
}

function optionEffect(subcommand: string | null): (word: string) => ActionEffect {
  return (word) => {
    if (subcommand === "grep" && /^-[a-zA-Z]*O/.test(word)) return "execute";
    const stated = Object.entries(strictOptions).filter(([option]) => isPrefixOf(word, [option]));
    return strictestEffect(stated.map(([, effect]) => effect));
  };
}

/** True where a format or an order needs signatures, which the program of `gpg.program` checks. */
function asksSignature(subcommand: string | null, word: string): boolean {
  return /%[-+ ]?G/.test(word) || (subcommand === "for-each-ref" && word.includes("signature"));
}

/** True for `-f`, and for the `-D` of `branch`, alone or among other letters; of a subcommand that nobody knows, for both. */
function isForceCluster(subcommand: string | null, word: string): boolean {
  if (subcommand === "branch" || !isKnown(subcommand)) return /^-[a-zA-Z]*[fD]/.test(word);
  return forcing.has(subcommand ?? "") && /^-[a-zA-Z]*f/.test(word);
}

function isKnown(subcommand: string | null): boolean {
  return (
    subcommand !== null && (readers.has(subcommand) || forcing.has(subcommand) || Object.hasOwn(others, subcommand))
  );
}

function isPrefixOf(word: string, options: readonly string[]): boolean {
  const [name = ""] = word.split("=", 1);
  return name.length > 2 && options.some((option) => option.startsWith(name));
}

function hostsOf(word: string): readonly string[] {
  const [, host] = /^[\w+.-]+:\/\/(?:[^/@\s]*@)?([^/\s]+)/.exec(word) ?? /^(?:[^\s/@:]+@)?([\w.-]+):/.exec(word) ?? [];
  return host === undefined ? [] : [host.toLowerCase()];
}
