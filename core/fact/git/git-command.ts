import { type ActionEffect, type GitFact, strictestEffect } from "../../action/action-fact.ts";
import { isKnownSubcommand, subcommandEffect } from "./git-subcommand.ts";

export interface GitReading {
  readonly fact: GitFact;
  readonly hosts: readonly string[];
}

const maxListed = 20;

/** Settings that change how something is shown, and run nothing. */
const shownSetting =
  /^(?:color\.\w+(?:\.\w+)?|core\.(?:quotepath|abbrev|precomposeunicode|ignorecase)|log\.(?:date|decorate|follow|abbrevcommit)|diff\.(?:renames|renamelimit|noprefix|mnemonicprefix|algorithm|context|colormoved)|status\.\w+|column\.\w+|advice\.\w+)=|^(?:core\.pager|pager\.\w+)=(?:cat)?$/i;

/** A folder below the one that the command line starts in. */
const innerFolder = /^(?!-|[~/]|(?:.*\/)?\.\.(?:\/|$))./;

/** Folders in which anybody may make a repository, whose settings name programs. */
const openFolder = /^(?:~|\/(?:tmp|var\/tmp|dev|proc|mnt|media)(?:\/|$))/;

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

/** Reads the words after `git`, with the names of variables that are set for it and the folder it runs in. Never throws. */
export function readGit(argv: readonly (string | null)[], env: readonly string[], folder = ""): GitReading {
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
      overrides.length > 0 || openFolder.test(folder) ? "execute" : "read",
      ...(isShown(texts) ? [] : [effect, subcommandEffect(subcommand, words)]),
      ...options.map(optionEffect(subcommand)),
      ...(texts.some((word) => word.includes("::")) ? ["execute" as const] : []),
      ...(words.some((word) => asksSignature(subcommand, word)) ? ["execute" as const] : []),
      ...(argv.includes(null) ? ["unknown" as const] : []),
      ...(isForced ? ["delete" as const] : []),
    ]),
  };
  return { fact, hosts: takesRemote ? all.flatMap((word) => hostsOf(word)) : [] };
}

const plainGlobals = new Set(["--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"]);
const shownAlone = new Set(["--version", "-v", "--html-path", "--man-path", "--info-path", "--exec-path"]);

function isShown(texts: readonly string[]): boolean {
  return texts.length === 1 && shownAlone.has(texts[0] ?? "");
}

interface GitGlobals {
  /** The place of the subcommand. */
  readonly at: number;
  readonly effect: ActionEffect;
  readonly configs: readonly string[];
}

function readGlobals(texts: readonly string[]): GitGlobals {
  const configs: string[] = [];
  for (let at = 0; at < texts.length; at += 1) {
    const text = texts[at] ?? "";
    if (!text.startsWith("-")) return { at, effect: effectOf(configs), configs };
    if (plainGlobals.has(text)) continue;
    at += 1;
    const value = texts[at] ?? "";
    if (text === "-c" && !shownSetting.test(value)) configs.push(value.split("=", 1)[0]?.toLowerCase() ?? "");
    const isTaken = text === "-c" || (text === "-C" && innerFolder.test(value));
    if (!isTaken) return { at: texts.length, effect: "execute", configs };
  }
  return { at: texts.length, effect: effectOf(configs), configs };
}

function effectOf(configs: readonly string[]): ActionEffect {
  return configs.length > 0 ? "execute" : "read";
}

function optionEffect(subcommand: string | null): (word: string) => ActionEffect {
  return (word) => {
    if (subcommand === "grep" && /^-[a-zA-Z]*O/.test(word)) return "execute";
    // The patterns come out of a file, wherever it lies.
    if (subcommand === "grep" && /^-[a-zA-Z]*f/.test(word)) return "unknown";
    const stated = Object.entries(strictOptions).filter(([option]) => isPrefixOf(word, [option]));
    return strictestEffect(stated.map(([, effect]) => effect));
  };
}

/** True where a format or an order needs signatures, which the program of `gpg.program` checks. */
function asksSignature(subcommand: string | null, word: string): boolean {
  if (/%[-+ ]?G/.test(word)) return true;
  return ["for-each-ref", "branch", "tag"].includes(subcommand ?? "") && word.includes("signature");
}

/** True for `-f`, and for the `-D` of `branch`, alone or among other letters; of a subcommand that nobody knows, for both. */
function isForceCluster(subcommand: string | null, word: string): boolean {
  if (subcommand === "branch" || !(forcing.has(subcommand ?? "") || isKnownSubcommand(subcommand)))
    return /^-[a-zA-Z]*[fD]/.test(word);
  return forcing.has(subcommand ?? "") && /^-[a-zA-Z]*f/.test(word);
}

function isPrefixOf(word: string, options: readonly string[]): boolean {
  const [name = ""] = word.split("=", 1);
  return name.length > 2 && options.some((option) => option.startsWith(name));
}

function hostsOf(word: string): readonly string[] {
  const [, host] = /^[\w+.-]+:\/\/(?:[^/@\s]*@)?([^/\s]+)/.exec(word) ?? /^(?:[^\s/@:]+@)?([\w.-]+):/.exec(word) ?? [];
  return host === undefined ? [] : [host.toLowerCase()];
}
