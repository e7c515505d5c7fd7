import type { Capability } from "../../action/capability.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { argumentsOf, type ToolArgument } from "./argument.ts";
import { meaningOf, type NameMeaning, secretWordIn, stricter, wordsOf } from "./vocabulary.ts";

/** A proposed statement about a tool. */
export interface Proposal {
  readonly capability: Capability;
  /** An entry of `facts`; null where no argument is one that is parsed. */
  readonly facts: JsonObject | null;
  /** The reasons: of the capability, then of the facts. Printable, without a text of the server's longer than a name. */
  readonly reasons: readonly string[];
  readonly factReasons: readonly string[];
}

/** Knowledge of a server beside its tools. */
export interface ServerHints {
  /** The one folder among its arguments; null where there are none, or several. */
  readonly root: string | null;
  /** The name that its client gives it. */
  readonly name: string;
}

/**
 * Proposes the capability and the facts of a tool by its name, its input schema and its annotations, all of them the word of its
 * server. What says nothing counts as `execute`, or `delete` where the server says that it destroys. An annotation only makes the
 * proposal stricter; that a tool only reads is believed where its name says so too.
 */
export function proposeFor(definition: JsonObject, server: ServerHints): Proposal {
  const name = String(definition.name);
  const words = wordsOf(name);
  const given = argumentsOf(definition);
  const judged = new Judged(nameMeaning(definition, words), annotationsOf(definition));
  judgeActions(judged, given);
  judgeAnnotations(judged);
  judgeSubject(judged, words);
  judgeArguments(judged, words, given);
  const facts = factsOf(judged, { words, given, definition, server });
  const { capability, reasons } = judged;
  const stated = Object.keys(facts.members).length === 0 ? null : facts.members;
  return { capability, reasons, facts: stated, factReasons: facts.reasons };
}

interface Annotations {
  readonly readOnly: boolean | undefined;
  readonly destructive: boolean | undefined;
}

function annotationsOf({ annotations }: JsonObject): Annotations {
  const hints = isJsonObject(annotations) ? annotations : {};
  const flag = (value: Json | undefined): boolean | undefined => (typeof value === "boolean" ? value : undefined);
  return { readOnly: flag(hints.readOnlyHint), destructive: flag(hints.destructiveHint) };
}

/**
 * The meaning of the name. Where it has no verb, the title, which is a name for people, counts if it speaks of reading and the
 * server says so too: "send input" may be what runs a command.
 */
function nameMeaning({ title, annotations }: JsonObject, words: readonly string[]): NameMeaning | undefined {
  const found = meaningOf(words);
  const hints = isJsonObject(annotations) ? annotations : {};
  if (found !== undefined || hints.readOnlyHint !== true) return found;
  const titles = [title, hints.title].filter((each) => typeof each === "string");
  return titles.map((each) => meaningOf(wordsOf(each))).find((each) => each?.capability === "read");
}

/** The capability of a tool while it is judged. It only gets stricter. */
class Judged {
  readonly annotations: Annotations;
  readonly reasons: string[] = [];
  capability: Capability;
  /** False where nothing has said yet what the tool does. */
  isKnown: boolean;

  constructor(meaning: NameMeaning | undefined, annotations: Annotations) {
    this.annotations = annotations;
    this.isKnown = meaning !== undefined;
    const isReading = meaning?.isAmbiguous === true && annotations.readOnly === true;
    this.capability = isReading ? "read" : (meaning?.capability ?? "execute");
    if (meaning === undefined) return;
    this.reasons.push(`its name says ${meaning.verb}${isReading ? ", its server that it only reads" : ""}`);
  }

  atLeast(capability: Capability, reason: string): void {
    const next = stricter(this.capability, capability);
    if (next === this.capability) return;
    this.capability = next;
    this.reasons.push(reason);
  }

  /** Says for the first time what the tool does. */
  become(capability: Capability, reason: string): void {
    this.capability = capability;
    this.isKnown = true;
    this.reasons.push(reason);
  }
}

const actionNames: ReadonlySet<string> = new Set(["action", "actions", "operation", "op", "subcommand"]);

/** A tool may be several: an argument chooses among what it does. */
function judgeActions(judged: Judged, given: readonly ToolArgument[]): void {
  for (const { name, plain, choices } of given) {
    if (choices.some((choice) => /^approved?$/i.test(choice))) judged.atLeast("approve", `its ${name} can approve`);
    if (!actionNames.has(plain) || choices.length === 0) continue;
    const meanings = choices.map((choice) => meaningOf(wordsOf(choice)));
    const known = meanings.filter((meaning) => meaning !== undefined);
    const strictest = known.reduce<Capability>((all, { capability }) => stricter(all, capability), "read");
    if (judged.isKnown) judged.atLeast(strictest, `its ${name} chooses what it does`);
    else
      judged.become(
        known.length < meanings.length ? stricter(strictest, "execute") : strictest,
        `its ${name} chooses what it does`,
      );
  }
}

function judgeAnnotations(judged: Judged): void {
  const { readOnly, destructive } = judged.annotations;
  if (!judged.isKnown) {
    judged.reasons.push("nothing in its name says what it does");
    if (destructive === true) judged.atLeast("delete", "its server says that it may destroy");
    return;
  }
  if (judged.capability !== "read") return;
  if (destructive === true) judged.atLeast("write", "its server says that it may destroy");
  else if (readOnly === false) judged.atLeast("write", "its server says that it changes something");
}

const codeNames: ReadonlySet<string> = new Set([
  "code",
  "script",
  "javascript",
  "js",
  "python",
  "expression",
  "sourcecode",
  "snippet",
]);
const outputName =
  /^(?:filename|filepath|(?:out|output|save|dest|destination)(?:file|path|dir|dirpath|folder|to|as)?|\w+filepath)$/;
const writing = /\b(?:save[sd]?|writes?|written|output)\b/i;

/** Words for rights: to change one of them is to change what others may do. */
const rightWords: ReadonlySet<string> = new Set(
  "permission permissions role roles acl policy policies collaborator collaborators".split(" "),
);

/** Applies what the tool is about, whatever its verb is. */
function judgeSubject(judged: Judged, words: readonly string[]): void {
  const secret = secretWordIn(words);
  if (secret !== undefined && judged.capability === "read")
    judged.atLeast("execute", `it reads what its name calls ${secret}`);
  if (judged.capability !== "read" && words.some((word) => rightWords.has(word)))
    judged.atLeast("approve", "its name speaks of rights");
}

/** Applies what the arguments allow, whatever the name says. */
function judgeArguments(judged: Judged, words: readonly string[], given: readonly ToolArgument[]): void {
  for (const argument of given) {
    const { name, plain, isText } = argument;
    if (!isText) continue;
    if (commandNames.has(plain)) judged.atLeast("execute", `its ${name} is a command`);
    if (codeNames.has(plain)) judged.atLeast("execute", `its ${name} is code`);
    if (isSql(argument, words)) judged.atLeast("execute", `its ${name} is SQL`);
    if (isUrl(argument)) judged.atLeast("network", `its ${name} says where it connects to`);
    if (isAddress(argument, given)) judged.atLeast("network", `its ${name} says whom it is for`);
    if (isOutput(argument)) judged.atLeast("write", `its ${name} names a file to write`);
  }
}

/** A choice such as `json` or `yaml` names no file. */
function isOutput({ plain, choices, description }: ToolArgument): boolean {
  if (choices.length > 0 || !outputName.test(plain)) return false;
  return writing.test(description) || /^(?:out|save|dest)/.test(plain);
}

function isUrl({ plain, format }: ToolArgument): boolean {
  return format === "uri" || format === "url" || /^(?:href|website|endpoint|uri)$|urls?$/.test(plain);
}

const sqlNames: ReadonlySet<string> = new Set(["sql", "sqlquery", "statement", "query"]);
const sqlWords = /^(?:sql|postgres|postgresql|mysql|mariadb|sqlite|mssql|database|db)$/;

function isSql({ plain, description }: ToolArgument, words: readonly string[]): boolean {
  return (
    sqlNames.has(plain) &&
    (plain.startsWith("sql") || /\bSQL\b/.test(description) || words.some((word) => sqlWords.test(word)))
  );
}

const commandNames: ReadonlySet<string> = new Set(["command", "cmd", "commandline", "shellcommand"]);

const shellWords: ReadonlySet<string> = new Set([
  "run",
  "exec",
  "execute",
  "shell",
  "bash",
  "sh",
  "terminal",
  "command",
]);

/** A command of something else than a shell has other words for what it does; a program may have its arguments elsewhere. */
function isCommandLine({ plain }: ToolArgument, { words, given }: Pick<FactSource, "words" | "given">): boolean {
  if (!commandNames.has(plain) || !words.some((word) => shellWords.has(word))) return false;
  return !given.some((other) => /^(?:args|argv|arguments|shell|interpreter)$/.test(other.plain));
}

const addressNames: ReadonlySet<string> = new Set(["to", "cc", "bcc", "recipient", "recipients"]);

function isAddress({ plain }: ToolArgument, given: readonly ToolArgument[]): boolean {
  return (
    addressNames.has(plain) && given.some((other) => /^(?:subject|body|message|text|content|html)$/.test(other.plain))
  );
}

const pathNames = /^(?:path|paths|file|files|filepath|filename|directory|dir|folder|source|destination|src|dst)$/;

interface FactSource {
  readonly words: readonly string[];
  readonly given: readonly ToolArgument[];
  readonly definition: JsonObject;
  readonly server: ServerHints;
}

/**
 * Proposes what is parsed. An argument that may be missing is stated where the tool is held anyway: a call without it has an
 * unknown effect, and of a tool that reads every such call would be held.
 */
function factsOf(
  judged: Judged,
  { words, given, definition, server }: FactSource,
): { members: JsonObject; reasons: string[] } {
  const members: Record<string, Json> = {};
  const reasons: string[] = [];
  const named = (is: (argument: ToolArgument) => boolean): readonly string[] =>
    given
      .filter((each) => each.isText && each.choices.length === 0 && (each.isRequired || judged.capability !== "read"))
      .filter(is)
      .map(({ name }) => name)
      .slice(0, 20);
  const state = (kind: string, names: readonly string[], reason: string): void => {
    if (names.length === 0) return;
    members[kind] = names.length === 1 ? (names[0] ?? "") : names;
    reasons.push(`${names.join(", ")}: ${reason}`);
  };
  state("shell", named((each) => isCommandLine(each, { words, given })).slice(0, 1), "a command line");
  state("sql", named((each) => isSql(each, words)).slice(0, 1), "SQL");
  if (members.sql !== undefined) {
    const dialect = dialectOf(
      `${server.name} ${String(definition.name)} ${String(definition.description).slice(0, 4_096)}`,
    );
    if (dialect !== undefined) members.dialect = dialect;
    else reasons.push("its dialect is not known: state it, or every statement is held");
  }
  state("url", named(isUrl), "where it connects to");
  if (server.root !== null) {
    state(
      "path",
      named(({ plain }) => pathNames.test(plain)),
      "a file below the folder of its server",
    );
    if (members.path !== undefined) members.root = server.root;
  }
  state(
    "address",
    named((each) => isAddress(each, given)),
    "whom it is for",
  );
  return { members, reasons };
}

/** Dialects that are not parsed: read as another one, a statement could look more harmless than it is. */
const otherDialects =
  /clickhouse|bigquery|snowflake|oracle|duckdb|databricks|redshift|cassandra|spark|trino|presto|hive/i;

/** The dialect that a text names; undefined where it names none, several, or one that is not parsed. */
function dialectOf(text: string): string | undefined {
  const found = Object.entries({
    postgresql: /postgres|supabase/i,
    mysql: /mysql|mariadb/i,
    sqlite: /sqlite/i,
    mssql: /mssql|sql server/i,
  }).filter(([, pattern]) => pattern.test(text));
  return found.length === 1 && !otherDialects.test(text) ? found[0]?.[0] : undefined;
}
