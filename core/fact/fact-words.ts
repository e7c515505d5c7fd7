import type {
  ActionFacts,
  FactKind,
  GitFact,
  ShellCommand,
  ShellFacts,
  SqlFacts,
  SqlStatement,
} from "../action/action-fact.ts";
import { quoteWord } from "../action/visible-text.ts";

const maxWords = 5;

/**
 * Says in a few words each what an action does by its facts, for reviewers: `pushes to evil.example, by force`, `drops orders`,
 * `runs rm on /srv/x`. Empty where the arguments were not stated. It points at the arguments and does not replace them.
 */
export function describeFacts({
  shell,
  git,
  sql,
  url,
  address,
  calls = [],
  effect,
}: Pick<ActionFacts, "effect" | "calls" | FactKind>): readonly string[] {
  const does = [
    ...(calls.length === 0 ? [] : [`asks for calls of ${listWords(calls.map(({ tool }) => tool))}`]),
    ...(shell === undefined ? [] : describeShell(shell)),
    ...(git ?? []).map((run) => describeGit(run)),
    ...(sql === undefined ? [] : describeSql(sql)),
    ...(url ?? [])
      .filter(({ zone, odd }) => odd || !["public", "name"].includes(zone))
      .map(
        ({ host, zone, odd }) =>
          `connects to ${odd ? "a host that clients read in different ways" : `the ${zone} host`} ${quoteWord(host)}`,
      ),
    ...(address === undefined || address.length === 0
      ? []
      : [`is for ${listWords(address.map(({ plain }) => plain))}`]),
  ];
  const isStated = calls.length > 0 || [shell, git, sql, url, address].some((kind) => kind !== undefined);
  const unknown = isStated && effect === "unknown" ? ["does what cannot be told from its arguments"] : [];
  const shown = [...new Set(does)];
  return [...shown.slice(0, maxWords), ...(shown.length > maxWords ? ["and more"] : []), ...unknown];
}

function describeShell({ parsed, dynamic, commands, more }: ShellFacts): readonly string[] {
  if (!parsed) return ["runs a command line that cannot be read"];
  const runs = commands.filter(({ name }) => name !== "git").map((command) => describeCommand(command));
  return [
    ...runs,
    ...(dynamic ? ["computes a part of its command line when it runs"] : []),
    ...(more ? ["names more than is listed here"] : []),
  ];
}

function describeCommand({ name, wrappers, hosts, paths, redirects }: ShellCommand): string {
  const places = [...hosts, ...paths];
  const written = redirects.flatMap(({ op, path }) => (op.includes(">") && path !== null ? [path] : []));
  return [
    `runs ${name === null ? "a program whose name is computed" : quoteWord(name)}`,
    ...(wrappers.length === 0 ? [] : [`under ${listWords(wrappers)}`]),
    ...(places.length === 0 ? [] : [`on ${listWords(places)}`]),
    ...(written.length === 0 ? [] : [`and writes ${listWords(written)}`]),
  ].join(" ");
}

function describeGit({ subcommand, remotes, force, config_overrides: overrides }: GitFact): string {
  const at = remotes.length === 0 ? "" : ` ${listWords(remotes)}`;
  const runs = subcommand === null ? "runs git in a way that cannot be read" : `runs git ${quoteWord(subcommand)}${at}`;
  const does = subcommand === "push" ? `pushes${at === "" ? "" : ` to${at}`}` : runs;
  const changes = overrides.length === 0 ? [] : [`with ${listWords(overrides)} set`];
  return [does, ...(force ? ["by force"] : []), ...changes].join(", ");
}

/** By the kind of a statement; any other is named as it is. */
const sqlVerbs: ReadonlyMap<string, string> = new Map([
  ["select", "reads"],
  ["insert", "adds to"],
  ["update", "changes"],
  ["delete", "deletes from"],
  ["truncate", "empties"],
  ["drop", "drops"],
]);

function describeSql({ parsed, statements, more }: SqlFacts): readonly string[] {
  if (!parsed) return ["runs SQL that cannot be read"];
  return [
    ...statements.map((statement) => describeStatement(statement)),
    ...(more ? ["runs more SQL than is listed here"] : []),
  ];
}

function describeStatement({ kind, tables, has_where: hasWhere, where_is_constant: isConstant }: SqlStatement): string {
  const named = tables.write.length > 0 ? tables.write : tables.read;
  const verb = sqlVerbs.get(kind) ?? `runs ${quoteWord(kind)}${named.length === 0 ? "" : " on"}`;
  const isWhole = (kind === "delete" || kind === "update") && (!hasWhere || isConstant);
  return `${verb}${named.length === 0 ? "" : ` ${listWords(named)}`}${isWhole ? ", every row" : ""}`;
}

function listWords(words: readonly string[]): string {
  return `${words.slice(0, maxWords).map(quoteWord).join(", ")}${words.length > maxWords ? " and more" : ""}`;
}
