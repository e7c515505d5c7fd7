import type { ActionEffect, SqlDialect } from "../../action/action-fact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { holdsAlways } from "./condition.ts";
import { dialectKind, inertMembers, plainBinaryOperators, plainMembers } from "./dialect-statement.ts";
import { dialectTerm } from "./dialect-term.ts";
import { joinName, OpinionDraft, type SqlOpinion } from "./opinion.ts";
import { plainOperators } from "./postgresql-statement.ts";

/** Names of common table expressions that can be seen at a place. */
type Scope = ReadonlySet<string>;

const noNames: Scope = new Set();
const changes = ["Insert", "Update", "Delete", "Merge"];
/** Hints of SQL Server that take locks which others wait for. */
const lockHints = new Set(["updlock", "xlock", "tablock", "tablockx", "holdlock", "serializable", "repeatableread"]);
/** Tables of SQLite that are files. */
const fileTables = new Set(["fsdir", "zipfile", "sqlite_dbpage", "sqlite_dbdata", "sqlite_dbptr"]);

/** Returns what a statement of DataFusion's tree does. In what reads, a member that nobody knows makes it unknown. */
export function readDialectTree(statement: JsonObject | string, dialect: SqlDialect): SqlOpinion {
  const draft = new OpinionDraft(dialect);
  new TreeWalk(draft, dialect).statement(typeof statement === "string" ? { [statement]: {} } : statement);
  return draft.finish();
}

class TreeWalk {
  readonly #draft: OpinionDraft;
  readonly #dialect: SqlDialect;
  /** False in a definition: what it says about columns and options runs nothing. */
  #isStrict = true;

  constructor(draft: OpinionDraft, dialect: SqlDialect) {
    this.#draft = draft;
    this.#dialect = dialect;
  }

  statement(node: JsonObject): void {
    const [type = "", body] = Object.entries(node)[0] ?? [];
    const { kind, effect } = dialectKind(type);
    this.#draft.kind = kind;
    this.#draft.raise(effect);
    if (!isJsonObject(body)) {
      this.#draft.raise("unknown");
      return;
    }
    if (type === "Query") this.#query(body, noNames, true);
    else if (changes.includes(type)) this.#change(type, body, noNames);
    else if (type === "Explain") this.#explain(body);
    else if (type === "ExplainTable") this.#draft.read.add(this.#nameOf(body.table_name));
    else if (type === "Copy") this.#copy(body);
    else if (kind === "drop" || kind === "truncate") this.#removed(body);
    else if (kind === "begin") this.#begin(body);
    else if (kind !== "show") this.#definition(body);
  }

  #definition(body: JsonObject): void {
    this.#isStrict = false;
    this.#visit(body, noNames);
    const table = body.name ?? body.table_name;
    if (Array.isArray(table) && this.#draft.effect === "write") this.#draft.addWrite(this.#nameOf(table));
  }

  #begin({ statements, exception }: JsonObject): void {
    if (isGivenList(statements) || isGivenList(exception)) this.#draft.raise("unknown");
  }

  #visit(node: Json | undefined, scope: Scope): void {
    if (Array.isArray(node)) for (const each of node) this.#visit(each, scope);
    else if (isJsonObject(node)) {
      if (isQuery(node)) {
        this.#query(node, scope, false);
        return;
      }
      for (const [key, value] of Object.entries(node)) {
        if (isSet(value) && !key.endsWith("_token")) this.#member(key, value, scope);
      }
    }
  }

  #member(key: string, value: Json, scope: Scope): void {
    if (inertMembers.has(key)) return;
    if (key === "Function" && isJsonObject(value)) {
      this.#call(value, scope);
      return;
    }
    if (key === "Table" && isJsonObject(value) && Array.isArray(value.name)) {
      this.#table(value, scope);
      return;
    }
    if (key === "BinaryOp" && isJsonObject(value)) {
      this.#binary(value, scope);
      return;
    }
    if (key === "into" && isJsonObject(value)) {
      this.#into(value);
      return;
    }
    if (key === "Wildcard") return;
    if (key === "DropColumn" || key === "DropPartitions") {
      this.#draft.raise("delete");
      return;
    }
    if (changes.includes(key) && this.#isStrict) {
      this.#draft.raise("unknown");
      return;
    }
    if (this.#isStrict && !plainMembers.has(key)) {
      this.#draft.raise("unknown");
      return;
    }
    this.#visit(value, scope);
  }

  #query(query: JsonObject, outer: Scope, isWhole: boolean): void {
    const { with: clause, body, locks, ...rest } = query;
    const wasStrict = this.#isStrict;
    this.#isStrict = true;
    const scope = this.#with(clause, outer);
    if (isGivenList(locks)) this.#draft.lock();
    const [type = "", part] = isJsonObject(body) ? (Object.entries(body)[0] ?? []) : [];
    if (changes.includes(type) && isJsonObject(part)) {
      const inner = part[type];
      if (isWhole) this.#draft.kind = dialectKind(type).kind;
      if (isJsonObject(inner)) this.#change(type, inner, scope);
      else this.#draft.raise("unknown");
    } else {
      if (isWhole && type === "Select" && isJsonObject(part)) {
        this.#draft.setCondition(isSet(part.selection), holdsAlways(dialectTerm(part.selection)));
      }
      this.#visit(body, scope);
    }
    this.#visit(rest, scope);
    this.#isStrict = wasStrict;
  }

  /** INVARIANT: a common table expression sees itself only where it is recursive; else its name is a table's. */
  #with(clause: Json | undefined, outer: Scope): Scope {
    if (!isJsonObject(clause) || !Array.isArray(clause.cte_tables)) return outer;
    const parts = clause.cte_tables.filter((each) => isJsonObject(each));
    const names = parts.map(({ alias }) => (isJsonObject(alias) ? this.#partOf(alias.name) : ""));
    const all = new Set([...outer, ...names]);
    for (const [at, { query }] of parts.entries()) {
      const scope = clause.recursive === true ? all : new Set([...outer, ...names.slice(0, at)]);
      this.#visit(query, scope);
    }
    return all;
  }

  #change(type: string, body: JsonObject, scope: Scope): void {
    if (type === "Insert") this.#insert(body, scope);
    else if (type === "Merge") this.#merge(body, scope);
    else this.#changeRows(type, body, scope);
  }

  #insert({ table, ...rest }: JsonObject, scope: Scope): void {
    const name = isJsonObject(table) ? table.TableName : undefined;
    if (Array.isArray(name)) this.#draft.addWrite(this.#nameOf(name));
    else this.#draft.raise("unknown");
    this.#visit({ ...rest, into: null }, scope);
  }

  #merge({ table, source, on, clauses, output }: JsonObject, scope: Scope): void {
    const target = isJsonObject(table) && isJsonObject(table.Table) ? table.Table.name : undefined;
    let effect: ActionEffect = "write";
    for (const clause of Array.isArray(clauses) ? clauses : []) {
      const { action, predicate } = isJsonObject(clause) ? clause : {};
      const [type, part] = isJsonObject(action) ? (Object.entries(action)[0] ?? []) : [];
      if (type === "Delete") effect = "delete";
      this.#visit([predicate ?? null, part ?? null], scope);
    }
    this.#draft.addWrite(this.#nameOf(target), effect);
    if (isSet(output)) this.#draft.raise("unknown");
    this.#visit([source ?? null, on ?? null], scope);
  }

  /** Adds each table that could be meant by the name after UPDATE or DELETE, which may be the alias of another. */
  #changeRows(type: string, body: JsonObject, scope: Scope): void {
    const { table, tables, selection, ...rest } = body;
    const effect = type === "Delete" ? "delete" : "write";
    const targets = isGivenList(tables) ? tables : [];
    const sources = relationsOf([table ?? null, body.from ?? null, body.using ?? null]);
    const changed = type === "Update" ? relationsOf(table) : relationsOf(body.from);
    for (const name of targets) this.#draft.addWrite(this.#nameOf(name), effect);
    const names = new Set(this.#draft.written);
    if (targets.length === 0) for (const { name } of changed) names.add(this.#nameOf(name));
    for (const { name, alias } of sources) {
      const called = isJsonObject(alias) ? this.#partOf(alias.name) : this.#nameOf(name);
      if (names.has(called) || names.has(this.#nameOf(name))) this.#draft.addWrite(this.#nameOf(name), effect);
    }
    for (const name of names) this.#draft.addWrite(name, effect);
    this.#draft.addChange(isSet(selection), holdsAlways(dialectTerm(selection)));
    this.#visit([selection ?? null, type === "Update" ? joinsOf(table) : null], scope);
    this.#visit(rest, scope);
  }

  #table(body: JsonObject, scope: Scope): void {
    const { name, args, with_hints, ...rest } = body;
    const table = this.#nameOf(name);
    const parts = Array.isArray(name) ? name.length : 0;
    if (isSet(args)) this.#draft.addFunction(table.toLowerCase());
    else if (parts !== 1 || !scope.has(table)) this.#draft.read.add(table);
    if (this.#dialect === "mssql" && parts > 3) this.#draft.raise("network");
    if (this.#dialect === "sqlite" && fileTables.has(table)) this.#draft.raise("execute");
    this.#hints(with_hints);
    this.#visit(args, scope);
    this.#visit(rest, scope);
  }

  #hints(hints: Json | undefined): void {
    if (!isGivenList(hints)) return;
    for (const hint of hints) {
      const name = isJsonObject(hint) && isJsonObject(hint.Identifier) ? String(hint.Identifier.value) : "";
      if (lockHints.has(name.toLowerCase())) this.#draft.lock();
    }
  }

  #call({ name, ...rest }: JsonObject, scope: Scope): void {
    this.#draft.addFunction(this.#nameOf(name).toLowerCase());
    this.#visit(rest, scope);
  }

  #binary({ left, op, right }: JsonObject, scope: Scope): void {
    if (typeof op === "string" ? !plainBinaryOperators.has(op) : !isPlainCustom(op)) this.#draft.raise("unknown");
    this.#visit([left ?? null, right ?? null], scope);
  }

  #into({ name, targets }: JsonObject): void {
    this.#draft.into = true;
    this.#draft.addWrite(this.#nameOf(name ?? (Array.isArray(targets) ? targets[0] : undefined)));
  }

  /** Without ANALYZE nothing runs but functions that the planner takes for constant. */
  #explain({ analyze, statement, options }: JsonObject): void {
    const inner = new OpinionDraft(this.#dialect);
    new TreeWalk(inner, this.#dialect).statement(isJsonObject(statement) ? statement : {});
    for (const name of inner.functions) this.#draft.addFunction(name);
    for (const name of [...inner.read, ...inner.written]) this.#draft.read.add(name);
    const runs = analyze === true || (Array.isArray(options) && options.some((each) => isAnalyze(each)));
    if (runs || inner.effect === "unknown") this.#draft.raise(inner.effect);
    if (runs) for (const name of inner.written) this.#draft.addWrite(name);
  }

  #copy({ source, to, target }: JsonObject): void {
    const { Table: table, Query: query } = isJsonObject(source) ? source : {};
    const name = isJsonObject(table) ? this.#nameOf(table.table_name) : "";
    if (isJsonObject(target)) this.#draft.raise(target.Program === undefined ? "write" : "execute");
    this.#draft.into = to === true && isJsonObject(target);
    if (name !== "" && to === true) this.#draft.read.add(name);
    else if (name !== "") this.#draft.addWrite(name);
    this.#visit(query, noNames);
  }

  #removed({ names, table_names, object_type }: JsonObject): void {
    const listed = isGivenList(names) ? names : isGivenList(table_names) ? table_names : [];
    if (object_type === "Role" || object_type === "User" || object_type === "Database") return;
    for (const each of listed) this.#draft.addWrite(this.#nameOf(isJsonObject(each) ? each.name : each), "delete");
  }

  #nameOf(name: Json | undefined): string {
    return joinName((Array.isArray(name) ? name : []).map((each) => this.#partOf(each)));
  }

  /** A part of a name, in lower case unless PostgreSQL keeps it as quoted. */
  #partOf(part: Json | undefined): string {
    if (!isJsonObject(part)) return "";
    const ident = isJsonObject(part.Identifier) ? part.Identifier : part;
    if (typeof ident.value !== "string") this.#draft.raise("unknown");
    const text = String(ident.value);
    const isKept = this.#dialect === "postgresql" && typeof ident.quote_style === "string";
    return isKept ? text : text.toLowerCase();
  }
}

function isQuery(node: JsonObject): boolean {
  return (
    isJsonObject(node.body) &&
    ("select_token" in node.body || setExpressions.some((each) => each in (node.body as JsonObject)))
  );
}

const setExpressions = ["Select", "Query", "SetOperation", "Values", "Table", ...changes];

/** False for a member that is absent, false or an empty list. */
function isSet(value: Json | undefined): value is Json {
  return value !== undefined && value !== null && value !== false && !(Array.isArray(value) && value.length === 0);
}

function isGivenList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value) && value.length > 0;
}

/** Bodies of the tables in a FROM clause and its joins, outside subqueries. */
function relationsOf(node: Json | undefined): readonly JsonObject[] {
  if (Array.isArray(node)) return node.flatMap((each) => relationsOf(each));
  if (!isJsonObject(node)) return [];
  const { Table: table } = node;
  if (isJsonObject(table)) return [table];
  return ["relation", "joins", "AfterSet", "BeforeSet", "WithFromKeyword", "WithoutKeyword"].flatMap((key) =>
    relationsOf(node[key]),
  );
}

function joinsOf(table: Json | undefined): Json {
  return isJsonObject(table) ? (table.joins ?? null) : null;
}

function isPlainCustom(op: Json | undefined): boolean {
  const parts = isJsonObject(op) ? op.PGCustomBinaryOperator : undefined;
  if (isJsonObject(op) && typeof op.Custom === "string") return plainOperators.has(op.Custom);
  return (
    Array.isArray(parts) && parts.length === 2 && parts[0] === "pg_catalog" && plainOperators.has(String(parts[1]))
  );
}

function isAnalyze(option: Json): boolean {
  if (!isJsonObject(option) || !isJsonObject(option.name)) return false;
  if (String(option.name.value).toLowerCase() !== "analyze") return false;
  return !/"(?:false|off)"|"Boolean":false/i.test(JSON.stringify(option.arg ?? null));
}
