import {
  type ActionEffect,
  type ActionFacts,
  type ActionPlaces,
  type AddressFact,
  type GitFact,
  type PathFact,
  type ShellFacts,
  type SqlDialect,
  type SqlFacts,
  type SqlStatement,
  type StatedDialect,
  sqlDialects,
  strictestEffect,
  type UrlFact,
} from "../action/action-fact.ts";
import type { FactParsers, ParserName, ReadCommand } from "./parser.ts";
import type { CommandText, StatedArguments, StatedValues } from "./stated-value.ts";

/** The facts of the stated arguments. */
export interface StatedFacts {
  readonly kinds: Pick<ActionFacts, "shell" | "git" | "sql" | "url" | "path" | "address">;
  /** The places that the kinds name, beside those of a search of the arguments. */
  readonly places: readonly ActionPlaces[];
  /** Null where no kind has an effect of its own, and all was read: then the capability of the tool decides. */
  readonly effect: ActionEffect | null;
}

/** The parsers that these arguments need. */
export function parsersFor(stated: StatedArguments): readonly ParserName[] {
  return [
    ...(stated.shell === undefined && stated.git === undefined ? [] : (["shell"] as const)),
    ...(["sql", "url", "path", "address"] as const).filter((kind) => stated[kind] !== undefined),
  ];
}

/**
 * Reads the stated arguments. A kind that is stated has facts, whatever stands there; where anything of it cannot be read,
 * or its parser is missing, the effect is `unknown`.
 */
export function readStated(stated: StatedArguments, parsers: Partial<FactParsers>): StatedFacts {
  const read = [
    stated.shell && readCommands(stated.shell, parsers.shell),
    stated.git && readGitArguments(stated.git, parsers.shell),
    stated.sql && readSqlTexts(stated.sql, stated.dialect, parsers.sql),
    stated.url && readUrls(stated.url, parsers.url),
    stated.path && readPaths(stated.path, stated.root, parsers.path),
    stated.address && readAddresses(stated.address, parsers.address),
  ].filter((each) => each !== undefined);
  const { git: _, ...kinds }: StatedFacts["kinds"] = Object.assign({}, ...read.map((each) => each.kinds));
  const git = joinGit(read, stated.git !== undefined);
  const effects = read.flatMap(({ effect }) => effect ?? []);
  if (git?.isRead === false) effects.push("unknown");
  return {
    kinds: git === undefined ? kinds : { ...kinds, git: git.facts },
    places: read.flatMap(({ places }) => places),
    effect: effects.length === 0 ? null : strictestEffect(effects),
  };
}

const maxFacts = 20;
const maxCommands = 50;

const unreadShell: ShellFacts = { parsed: false, dynamic: true, more: true, effect: "unknown", commands: [] };
const unreadGit: GitFact = {
  subcommand: null,
  options: [],
  remotes: [],
  refs: [],
  force: false,
  config_overrides: [],
  effect: "unknown",
};
const unreadUrl: UrlFact = { scheme: "", host: "", zone: "reserved", port: 0, userinfo: false, odd: true };
const unreadPlaces: ActionPlaces = { hosts: [], paths: [], more: true };

/** The facts of the values of one kind. */
interface ReadValues<Fact> {
  readonly facts: readonly Fact[];
  /** False where anything is left unread. */
  readonly isRead: boolean;
}

/** Reads every value; one that has no parser, or whose parser fails, has the fact that `unread` makes of it. */
function readEach<Value, Fact>(
  { values, isWhole }: StatedValues<Value>,
  parse: ((value: Value) => Fact) | undefined,
  unread: (value: Value) => Fact,
): ReadValues<Fact> {
  let isRead = isWhole && parse !== undefined;
  const facts = values.map((value) => {
    try {
      if (parse !== undefined) return parse(value);
    } catch {
      isRead = false;
    }
    return unread(value);
  });
  return { facts, isRead };
}

type CommandParser = FactParsers["shell"] | undefined;

const unreadCommand: ReadCommand = { shell: unreadShell, git: [], places: unreadPlaces };

function readCommands(stated: StatedValues<CommandText>, parse: CommandParser): StatedFacts {
  const { facts, isRead } = readEach(stated, parse, () => unreadCommand);
  const read = isRead ? facts : [...facts, unreadCommand];
  const shell = joinShells(read.map((each) => each.shell));
  const git = read.flatMap((each) => each.git);
  const places = read.map((each) => each.places);
  return { kinds: { shell, git }, places, effect: strictestEffect([shell, ...git].map(effectOf)) };
}

/** The command lines of several texts as one. */
export function joinShells(read: readonly ShellFacts[]): ShellFacts {
  const [only] = read;
  if (only !== undefined && read.length === 1) return only;
  const commands = read.flatMap((each) => each.commands);
  const isCut = commands.length > maxCommands;
  return {
    parsed: read.every(({ parsed }) => parsed),
    dynamic: read.some(({ dynamic }) => dynamic),
    more: isCut || read.some(({ more }) => more),
    effect: isCut ? "unknown" : strictestEffect(read.map(effectOf)),
    commands: commands.slice(0, maxCommands),
  };
}

/** Reads the arguments of git. A tool may give a text to a shell, or split it at blanks itself: both readings count. */
function readGitArguments({ values, isWhole }: StatedValues<CommandText>, parse: CommandParser): StatedFacts {
  const lines = values.map(gitLines);
  const first = readEach({ values: lines.map(([line]) => line), isWhole }, parse, () => unreadCommand);
  const others = readEach({ values: lines.flatMap(([, ...rest]) => rest), isWhole }, parse, () => unreadCommand);
  const isRead = first.isRead && others.isRead;
  const git = first.facts.flatMap((each) => (each.git.length === 0 ? [unreadGit] : each.git));
  const all = [...first.facts, ...others.facts];
  const effects = all.flatMap((each) => [each.shell, ...each.git]).map(effectOf);
  return {
    kinds: { git: isRead ? git : [...git, unreadGit] },
    places: isRead ? all.map(({ places }) => places) : [...all.map(({ places }) => places), unreadPlaces],
    effect: isRead ? strictestEffect([...effects, ...git.map(effectOf)]) : "unknown",
  };
}

function effectOf({ effect }: { readonly effect: ActionEffect }): ActionEffect {
  return effect;
}

function gitLines(value: CommandText): readonly [CommandText, ...CommandText[]] {
  if (typeof value !== "string") return [value[0] === "git" ? value : ["git", ...value]];
  const words = value.split(/\s+/).filter((word) => word !== "");
  return words[0] === "git" ? [value, words] : [`git ${value}`, ["git", ...words]];
}

/** The runs of git in all kinds together; undefined where none are stated or found. */
function joinGit(read: readonly StatedFacts[], isStated: boolean): ReadValues<GitFact> | undefined {
  const facts = read.flatMap(({ kinds }) => kinds.git ?? []);
  if (facts.length === 0 && !isStated) return undefined;
  return { facts: facts.slice(0, maxFacts), isRead: facts.length <= maxFacts };
}

function readSqlTexts(
  stated: StatedValues<string>,
  given: StatedDialect | null,
  parse: FactParsers["sql"] | undefined,
): StatedFacts {
  const dialect = given === "every" ? null : given;
  const unread: SqlFacts = { parsed: false, dialect, effect: "unknown", statements: [], more: true };
  const read =
    given === "every" ? readEveryDialect : (text: string, reader: FactParsers["sql"]) => reader(text, dialect);
  const { facts, isRead } = readEach(stated, parse && ((text) => read(text, parse)), () => unread);
  const sql = joinSql(isRead ? facts : [...facts, unread], dialect);
  return { kinds: { sql }, places: [], effect: sql.effect };
}

/**
 * The statements that the text is in any dialect, each once, with the strictest effect of all. INVARIANT: unknown where one
 * reader refuses it: its server may understand what its reader does not, such as a comment that is executed.
 */
function readEveryDialect(text: string, parse: FactParsers["sql"]): SqlFacts {
  const read = sqlDialects.map((dialect) => parse(text, dialect));
  const statements = new Map<string, SqlStatement>();
  for (const statement of read.flatMap((each) => each.statements)) {
    const key = JSON.stringify([statement.kind, statement.tables.write]);
    statements.set(key, joinStatements(statement, statements.get(key)));
  }
  return {
    parsed: read.every(({ parsed }) => parsed),
    dialect: null,
    effect: strictestEffect(read.map(effectOf)),
    statements: [...statements.values()].slice(0, maxFacts),
    more: statements.size > maxFacts || read.some(({ more }) => more),
  };
}

/** The statements of several texts as those of one. */
export function joinSql(read: readonly SqlFacts[], dialect: SqlDialect | null): SqlFacts {
  const [only] = read;
  if (only !== undefined && read.length === 1) return only;
  const statements = read.flatMap((each) => each.statements);
  const isCut = statements.length > maxFacts;
  return {
    parsed: read.every(({ parsed }) => parsed),
    dialect,
    effect: isCut ? "unknown" : strictestEffect(read.map(effectOf)),
    statements: statements.slice(0, maxFacts),
    more: isCut || read.some(({ more }) => more),
  };
}

/** One statement as two readers see it: with what either of them finds. */
function joinStatements(one: SqlStatement, other: SqlStatement = one): SqlStatement {
  const join = (some: readonly string[], more: readonly string[]): readonly string[] => [
    ...new Set([...some, ...more]),
  ];
  return {
    ...one,
    effect: strictestEffect([one.effect, other.effect]),
    tables: { read: join(one.tables.read, other.tables.read), write: one.tables.write },
    functions: join(one.functions, other.functions),
    has_where: one.has_where && other.has_where,
    where_is_constant: one.where_is_constant || other.where_is_constant,
    into: one.into || other.into,
    locking: one.locking || other.locking,
  };
}

function readUrls(stated: StatedValues<string>, parse: FactParsers["url"] | undefined): StatedFacts {
  const { facts: url, isRead } = readEach(stated, parse, () => unreadUrl);
  const hosts = url.map(({ host }) => host).filter((host) => host !== "");
  return { kinds: { url }, places: [{ hosts, paths: [], more: false }], effect: isRead ? null : "unknown" };
}

function readPaths(
  stated: StatedValues<string>,
  root: string | null,
  parse: FactParsers["path"] | undefined,
): StatedFacts {
  const { facts: path, isRead } = readEach(
    stated,
    parse && ((text) => parse(text, root ?? "/")),
    (text): PathFact => ({ plain: text, inside: false, odd: true }),
  );
  const paths = path.filter(({ odd }) => !odd).map(({ plain }) => plain);
  return { kinds: { path }, places: [{ hosts: [], paths, more: false }], effect: isRead ? null : "unknown" };
}

function readAddresses(stated: StatedValues<string>, parse: FactParsers["address"] | undefined): StatedFacts {
  const unread = (text: string): AddressFact => ({ kind: "other", plain: text, odd: true });
  const { facts: address, isRead } = readEach(stated, parse, unread);
  return { kinds: { address }, places: [], effect: isRead ? null : "unknown" };
}

const maxPlaces = 20;

/** The places of all, each once. */
export function joinPlaces(all: readonly ActionPlaces[]): ActionPlaces {
  const hosts = new Set<string>();
  const paths = new Set<string>();
  for (const found of all) {
    for (const host of found.hosts) if (!hasHost(hosts, host)) hosts.add(host);
    for (const path of found.paths) paths.add(path);
  }
  return {
    hosts: [...hosts].slice(0, maxPlaces),
    paths: [...paths].slice(0, maxPlaces),
    more: all.some(({ more }) => more) || hosts.size > maxPlaces || paths.size > maxPlaces,
  };
}

/** Returns true where the host is there, alone or with its port. */
function hasHost(hosts: ReadonlySet<string>, host: string): boolean {
  if (hosts.has(host) || hosts.has(`[${host}]`)) return true;
  for (const each of hosts) if (each.startsWith(`${host}:`) || each.startsWith(`[${host}]:`)) return true;
  return false;
}
