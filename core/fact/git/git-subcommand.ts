import type { ActionEffect } from "../../action/action-fact.ts";

/** Subcommands that read with every option but the strict ones of `git-command.ts`. */
const readers = new Set(
  "status log diff show blame annotate ls-files ls-tree rev-parse rev-list describe shortlog cat-file merge-base name-rev for-each-ref show-ref count-objects check-ignore check-attr grep whatchanged cherry diff-tree diff-index diff-files range-diff show-branch version".split(
    " ",
  ),
);

/** A way of writing a subcommand that only reads. */
interface ReadingForm {
  /** The first word. */
  readonly verb?: RegExp;
  /** Every option; none are taken unless told. */
  readonly options?: RegExp;
  /** One of the options, without which the subcommand does something else. */
  readonly needs?: RegExp;
  /** The least and most words that are neither options nor the verb; none unless told. */
  readonly operands?: readonly [number, number];
  readonly operand?: RegExp;
}

const any = [0, 64] as const;
const anyOption = /^-/;
const branchOptions =
  /^(?:-[arv]+|--all|--remotes|--list|--show-current|--verbose|--(?:no-)?color|--(?:no-)?column|--(?:sort|format|points-at)=.*|--(?:no-)?(?:contains|merged)(?:=.*)?|--points-at|--ignore-case|-i|--no-abbrev|--abbrev=\d+)$/;
const tagOptions =
  /^(?:-l|-n\d*|--list|--(?:no-)?column|--(?:sort|format|points-at)=.*|--(?:no-)?(?:contains|merged)(?:=.*)?|--points-at|--ignore-case|-i)$/;
const listing = /^(?:--list|--(?:no-)?(?:contains|merged)(?:=.*)?|--points-at(?:=.*)?)$/;
const configScope =
  /^(?:--local|--global|--system|--worktree|--show-origin|--show-scope|--name-only|--null|-z|--includes|--type=\w+|--bool|--int|--path)$/;
const configList = new RegExp(`^(?:-l|--list)$|${configScope.source}`);
const configGet = new RegExp(`^(?:--get|--get-all|--get-regexp|--all|--regexp)$|${configScope.source}`);
const noCredential = "(?!.*(?:extraheader|token|passw|secret|credential|cookie|helper))";
/** Keys whose values are no credentials. */
const configKey = new RegExp(`^${noCredential}[\\w.*^$|/:-]+$`, "i");
const dottedConfigKey = new RegExp(`^${noCredential}(?=.*\\.)`, "i");

/** Subcommands that also change something, in the forms that do not. */
const forms: Readonly<Record<string, readonly ReadingForm[]>> = {
  branch: [{ options: branchOptions }, { options: branchOptions, needs: listing, operands: any }],
  tag: [
    { options: tagOptions },
    { options: tagOptions, needs: new RegExp(`^(?:-l|-n\\d*)$|${listing.source}`), operands: any },
  ],
  remote: [{ options: /^(?:-v|--verbose)$/ }, { verb: /^get-url$/, options: /^(?:--push|--all)$/, operands: [1, 1] }],
  stash: [{ verb: /^(?:list|show)$/, options: anyOption, operands: any }],
  reflog: [
    { options: anyOption },
    { verb: /^(?:show|list|exists)$/, options: anyOption, operands: any },
    { verb: /^HEAD\b/, options: anyOption },
  ],
  worktree: [{ verb: /^list$/, options: /^(?:--porcelain|--verbose|-v|-z)$/ }],
  submodule: [{}, { verb: /^status$/, options: /^--(?:recursive|cached)$/, operands: any }],
  config: [
    { options: configList, needs: /^(?:-l|--list)$/ },
    { verb: /^list$/, options: configScope },
    { verb: /^get$/, options: configGet, operands: [1, 1], operand: configKey },
    { options: configGet, needs: /^--get/, operands: [1, 2], operand: configKey },
    { options: configScope, operands: [1, 1], operand: dottedConfigKey },
  ],
  notes: [{}, { verb: /^(?:list|show)$/, operands: [0, 1] }],
  "symbolic-ref": [{ options: /^(?:--short|--quiet|-q|--no-recurse)$/, operands: [1, 1] }],
  var: [{ operands: [1, 1], operand: /^GIT_(?:AUTHOR_IDENT|COMMITTER_IDENT|DEFAULT_BRANCH)$/ }],
  bisect: [{ verb: /^log$/ }],
  fsck: [
    {
      options:
        /^--(?:full|strict|no-dangling|unreachable|dangling|connectivity-only|no-reflogs|verbose|(?:no-)?progress)$/,
    },
  ],
  clean: [
    {
      options: /^(?:-[dxXq]*n[ndxXq]*|-[dxXq]+|--dry-run|--quiet)$/,
      needs: /^(?:-[a-zA-Z]*n|--dry-run$)/,
      operands: any,
    },
  ],
  apply: [
    {
      options:
        /^(?:--(?:stat|check|numstat|summary|reverse|verbose|cached|index|recount)|--(?:include|exclude|directory|whitespace)=.*|-R|-v|-[pC]\d+)$/,
      needs: /^--(?:stat|check|numstat|summary)$/,
      operands: any,
    },
  ],
  archive: [{ options: /^(?:-l|--list)$/, needs: /^-/ }],
  bundle: [{ verb: /^(?:verify|list-heads)$/, options: /^(?:-q|--quiet)$/, operands: any }],
  "sparse-checkout": [{ verb: /^list$/ }],
  rerere: [{ verb: /^(?:status|diff|remaining)$/ }],
  "verify-pack": [{ options: /^(?:-v|-s|--verbose|--stat-only)$/, operands: any }],
  "ls-remote": [{ options: /^--get-url$/, needs: /^--get-url$/, operands: [0, 1] }],
  stripspace: [{ options: /^(?:-s|-c|--strip-comments|--comment-lines)$/ }],
  help: [{ options: /^(?:-a|-g|-c|--all|--guides|--config)$/ }],
};

const others: Readonly<Record<string, ActionEffect>> = {
  ...Object.fromEntries(
    "fetch clone pull push ls-remote send-email request-pull".split(" ").map((name) => [name, "network"]),
  ),
  ...Object.fromEntries(
    "add commit checkout switch restore merge cherry-pick revert mv init tag branch stash worktree apply am notes reset symbolic-ref"
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

/** Returns the effect of a subcommand with these words, its strict options aside. */
export function subcommandEffect(subcommand: string | null, words: readonly string[]): ActionEffect {
  if (subcommand === null) return "unknown";
  if (readers.has(subcommand)) return "read";
  const stated = Object.hasOwn(forms, subcommand) ? forms[subcommand] : undefined;
  if (stated?.some((form) => hasForm(form, words)) === true) return "read";
  if (subcommand === "stash" && ["drop", "clear", "pop"].includes(words[0] ?? "")) return "delete";
  return (Object.hasOwn(others, subcommand) ? others[subcommand] : undefined) ?? "unknown";
}

/** Returns true for a subcommand that this table speaks of. */
export function isKnownSubcommand(subcommand: string | null): boolean {
  return (
    subcommand !== null &&
    (readers.has(subcommand) || Object.hasOwn(forms, subcommand) || Object.hasOwn(others, subcommand))
  );
}

function hasForm({ verb, options, needs, operands = [0, 0], operand }: ReadingForm, words: readonly string[]): boolean {
  if (verb !== undefined && !verb.test(words[0] ?? "")) return false;
  const rest = verb === undefined ? words : words.slice(1);
  const given = rest.filter((word) => word.startsWith("-"));
  const named = rest.filter((word) => !word.startsWith("-"));
  return (
    given.every((word) => options?.test(word) === true) &&
    (needs === undefined || given.some((word) => needs.test(word))) &&
    named.length >= operands[0] &&
    named.length <= operands[1] &&
    (operand === undefined || named.every((word) => operand.test(word)))
  );
}
