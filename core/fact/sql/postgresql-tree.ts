import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { holdsAlways } from "./condition.ts";
import { joinName, OpinionDraft, type SqlOpinion } from "./opinion.ts";
import { plainNodes, plainOperators, postgresqlKind } from "./postgresql-statement.ts";
import { postgresqlTerm } from "./postgresql-term.ts";

/** Names of common table expressions that can be seen at a place. */
type Scope = ReadonlySet<string>;

const noNames: Scope = new Set();
/** Members that hold a table which its statement changes. */
const changedTables = new Set(["relation", "rel", "view"]);
/** Members that run nothing: names of types and of columns. */
const inertMembers = new Set(["typeName", "colnames", "aliascolnames"]);

/** Returns what a statement of PostgreSQL's parse tree does. A node that nobody knows makes it unknown. */
export function readPostgresqlTree(statement: JsonObject): SqlOpinion {
  const draft = new OpinionDraft("postgresql");
  new TreeWalk(draft).statement(isJsonObject(statement.stmt) ? statement.stmt : {});
  return draft.finish();
}

class TreeWalk {
  readonly #draft: OpinionDraft;

  constructor(draft: OpinionDraft) {
    this.#draft = draft;
  }

  statement(node: JsonObject): void {
    const [type = "", body] = Object.entries(node)[0] ?? [];
    if (!isJsonObject(body)) {
      this.#draft.raise("unknown");
      return;
    }
    const { kind, effect } = postgresqlKind(type, body);
    this.#draft.kind = kind;
    this.#draft.raise(effect);
    this.#draft.setCondition(body.whereClause !== undefined, holdsAlways(postgresqlTerm(body.whereClause)));
    if (type === "ExplainStmt") this.#explain(body);
    else if (type === "CopyStmt") this.#copy(body);
    else if (type === "DropStmt") this.#drop(body);
    else if (type === "CreateTableAsStmt") this.#createAs(body);
    else if (type === "TruncateStmt") this.#truncate(body);
    else if (effect !== "unknown") this.#typed(type, body, noNames, true);
  }

  #visit(node: Json | undefined, scope: Scope): void {
    if (Array.isArray(node)) for (const each of node) this.#visit(each, scope);
    else if (isJsonObject(node)) {
      for (const [key, value] of Object.entries(node)) this.#member(key, value, scope);
    }
  }

  #member(key: string, value: Json, scope: Scope): void {
    if (inertMembers.has(key)) return;
    if (/^[A-Z]/.test(key)) {
      if (isJsonObject(value)) this.#typed(key, value, scope, false);
    } else if (changedTables.has(key) && isJsonObject(value) && value.relname !== undefined) {
      this.#draft.addWrite(tableOf(value));
    } else if (key === "withClause") this.#draft.raise("unknown");
    else this.#visit(value, scope);
  }

  #typed(type: string, body: JsonObject, scope: Scope, isWhole: boolean): void {
    switch (type) {
      case "SelectStmt": {
        this.#select(body, scope);
        return;
      }
      case "InsertStmt":
      case "UpdateStmt":
      case "DeleteStmt":
      case "MergeStmt": {
        this.#change(type, body, scope);
        return;
      }
      case "RangeVar": {
        this.#table(body, scope);
        return;
      }
      case "FuncCall": {
        this.#call(body, scope);
        return;
      }
      case "A_Expr": {
        this.#operator(body.name, body, scope);
        return;
      }
      case "SubLink": {
        this.#operator(body.operName, body, scope);
        return;
      }
      case "SortBy": {
        this.#operator(body.useOp, body, scope);
        return;
      }
      case "TypeCast": {
        this.#visit(body.arg, scope);
        return;
      }
      case "AlterTableCmd":
        if (body.subtype === "AT_DropColumn") this.#draft.raise("delete");
        {
          this.#visit(body, scope);
          return;
        }
      default:
        if (!isWhole && !plainNodes.has(type)) this.#draft.raise("unknown");
        this.#visit(body, scope);
    }
  }

  #select(body: JsonObject, outer: Scope): void {
    const { withClause, intoClause, lockingClause, larg, rarg, ...rest } = body;
    const scope = this.#with(withClause, outer);
    if (isJsonObject(intoClause)) this.#into(intoClause);
    if (lockingClause !== undefined) this.#draft.lock();
    if (isJsonObject(larg)) this.#select(larg, scope);
    if (isJsonObject(rarg)) this.#select(rarg, scope);
    this.#visit(rest, scope);
  }

  #into({ rel }: JsonObject): void {
    this.#draft.into = true;
    this.#draft.addWrite(isJsonObject(rel) ? tableOf(rel) : "");
  }

  /** INVARIANT: a common table expression sees itself only where it is recursive; else its name is a table's. */
  #with(clause: Json | undefined, outer: Scope): Scope {
    if (!isJsonObject(clause) || !Array.isArray(clause.ctes)) return outer;
    const parts = clause.ctes.map((each) => (isJsonObject(each) ? each.CommonTableExpr : null));
    const names = parts.map((each) => (isJsonObject(each) ? String(each.ctename) : ""));
    const all = new Set([...outer, ...names]);
    for (const [at, part] of parts.entries()) {
      if (!isJsonObject(part)) this.#draft.raise("unknown");
      else this.#visit(part, clause.recursive === true ? all : new Set([...outer, ...names.slice(0, at)]));
    }
    return all;
  }

  #change(type: string, body: JsonObject, outer: Scope): void {
    const { withClause, relation, whereClause, ...rest } = body;
    const scope = this.#with(withClause, outer);
    const deletes = type === "DeleteStmt" || (type === "MergeStmt" && mergeDeletes(body));
    this.#draft.addWrite(isJsonObject(relation) ? tableOf(relation) : "", deletes ? "delete" : "write");
    if (type === "UpdateStmt" || type === "DeleteStmt") {
      this.#draft.addChange(whereClause !== undefined, holdsAlways(postgresqlTerm(whereClause)));
    }
    this.#visit(whereClause, scope);
    this.#visit(rest, scope);
  }

  #table(body: JsonObject, scope: Scope): void {
    const isLocal = body.schemaname === undefined && scope.has(String(body.relname));
    if (!isLocal) this.#draft.read.add(tableOf(body));
  }

  #call({ funcname, ...rest }: JsonObject, scope: Scope): void {
    this.#draft.addFunction(namesOf(funcname).join("."));
    this.#visit(rest, scope);
  }

  #operator(name: Json | undefined, body: JsonObject, scope: Scope): void {
    const names = namesOf(name);
    const isOwn = names.length < 2 || (names.length === 2 && names[0] === "pg_catalog");
    if (names.length > 0 && !((isOwn && plainOperators.has(names.at(-1) ?? "")) || isKeyword(names))) {
      this.#draft.raise("unknown");
    }
    const { name: _name, operName: _operName, useOp: _useOp, ...rest } = body;
    this.#visit(rest, scope);
  }

  /** Without ANALYZE nothing runs but functions that the planner takes for constant. */
  #explain({ query, options }: JsonObject): void {
    const inner = new OpinionDraft("postgresql");
    new TreeWalk(inner).statement(isJsonObject(query) ? query : {});
    for (const name of inner.functions) this.#draft.addFunction(name);
    for (const name of [...inner.read, ...inner.written]) this.#draft.read.add(name);
    const runs = Array.isArray(options) && options.some((each) => isAnalyze(each));
    if (runs || inner.effect === "unknown") this.#draft.raise(inner.effect);
    if (runs) for (const name of inner.written) this.#draft.addWrite(name);
  }

  #copy({ relation, query, is_from, is_program, filename }: JsonObject): void {
    if (is_program === true) this.#draft.raise("execute");
    if (filename !== undefined) this.#draft.raise("write");
    this.#draft.into = is_from !== true && (filename !== undefined || is_program === true);
    if (isJsonObject(relation) && is_from === true) this.#draft.addWrite(tableOf(relation));
    else if (isJsonObject(relation)) this.#draft.read.add(tableOf(relation));
    this.#visit(query, noNames);
  }

  #drop({ objects }: JsonObject): void {
    for (const each of Array.isArray(objects) ? objects : []) {
      const items = isJsonObject(each) && isJsonObject(each.List) ? each.List.items : [each];
      const names = namesOf(items);
      if (names.length > 0) this.#draft.addWrite(joinName(names), "delete");
    }
  }

  #createAs({ query, into }: JsonObject): void {
    if (isJsonObject(into)) this.#into(into);
    this.#visit(query, noNames);
  }

  #truncate({ relations }: JsonObject): void {
    for (const each of Array.isArray(relations) ? relations : []) {
      if (isJsonObject(each) && isJsonObject(each.RangeVar)) this.#draft.addWrite(tableOf(each.RangeVar), "delete");
    }
  }
}

function mergeDeletes({ mergeWhenClauses }: JsonObject): boolean {
  return (Array.isArray(mergeWhenClauses) ? mergeWhenClauses : []).some(
    (each) =>
      isJsonObject(each) && isJsonObject(each.MergeWhenClause) && each.MergeWhenClause.commandType === "CMD_DELETE",
  );
}

function isAnalyze(option: Json): boolean {
  const { defname, arg } = isJsonObject(option) && isJsonObject(option.DefElem) ? option.DefElem : {};
  if (defname !== "analyze") return false;
  const text = isJsonObject(arg) && isJsonObject(arg.String) ? arg.String.sval : undefined;
  return !["false", "off"].includes(String(text).toLowerCase());
}

/** `between`, `in` and `is distinct from` stand where others have a sign. */
function isKeyword(names: readonly string[]): boolean {
  return names.length === 1 && /^[a-z ]+$/i.test(names[0] ?? "");
}

function tableOf({ catalogname, schemaname, relname }: JsonObject): string {
  return joinName([catalogname, schemaname, relname].filter((each) => typeof each === "string"));
}

function namesOf(list: Json | undefined): readonly string[] {
  if (!Array.isArray(list)) return [];
  return list.flatMap((each) => {
    const text = isJsonObject(each) && isJsonObject(each.String) ? each.String.sval : undefined;
    return typeof text === "string" ? [text] : [];
  });
}
