import type { ActionEffect } from "../../action/action-fact.ts";

/** The word that a statement is called by, and its effect apart from what stands in it. */
export interface StatementKind {
  readonly kind: string;
  readonly effect: ActionEffect;
}

/** Types of statements in PostgreSQL's parse tree without the ending `Stmt`, as `kind: types`. */
const kindsByEffect: Readonly<Partial<Record<ActionEffect, Readonly<Record<string, string>>>>> = {
  read: { select: "Select", show: "VariableShow", explain: "Explain", begin: "Transaction", copy: "Copy" },
  write: {
    insert: "Insert",
    update: "Update",
    merge: "Merge",
    create:
      "Create CreateTableAs Index View CreateSchema CreateSeq CreateEnum CreateRange CreateDomain CompositeType CreateRole " +
      "CreatePolicy CreateStats Createdb CreateTableSpace",
    alter:
      "AlterTable Rename AlterSeq AlterEnum AlterDomain AlterRole AlterRoleSet AlterOwner AlterObjectSchema AlterDatabase " +
      "AlterDatabaseSet AlterPolicy AlterDefaultPrivileges AlterTableMoveAll AlterType AlterStats AlterTableSpaceOptions",
    grant: "Grant GrantRole",
    comment: "Comment SecLabel",
    set: "VariableSet ConstraintsSet",
    vacuum: "Vacuum",
    reindex: "Reindex",
    cluster: "Cluster",
    checkpoint: "CheckPoint",
    refresh: "RefreshMatView",
    lock: "Lock",
    notify: "Notify",
    listen: "Listen",
    unlisten: "Unlisten",
    discard: "Discard",
    deallocate: "Deallocate",
  },
  delete: {
    delete: "Delete",
    truncate: "Truncate",
    drop: "Drop DropRole Dropdb DropOwned DropTableSpace DropSubscription DropUserMapping",
  },
  execute: {
    call: "Call",
    load: "Load",
    create:
      "CreateFunction CreateExtension CreateTrig CreateEventTrig CreatePLang Rule CreateCast Define CreateOpClass " +
      "CreateOpFamily CreateTransform CreateAm CreateConversion",
    alter: "AlterSystem AlterExtension AlterExtensionContents AlterFunction AlterEventTrig AlterOperator AlterOpFamily",
  },
  network: {
    create: "CreateForeignServer CreateFdw CreateUserMapping CreateForeignTable CreateSubscription CreatePublication",
    alter: "AlterForeignServer AlterFdw AlterUserMapping AlterSubscription AlterPublication",
    import: "ImportForeignSchema",
  },
  unknown: {
    do: "Do",
    prepare: "Prepare",
    execute: "Execute",
    declare: "DeclareCursor",
    fetch: "Fetch",
    close: "ClosePortal",
  },
};

/** Kinds of `TransactionStmt`; those of two-phase commits change what outlives the session. */
const transactionKinds: Readonly<Record<string, StatementKind>> = {
  TRANS_STMT_BEGIN: { kind: "begin", effect: "read" },
  TRANS_STMT_START: { kind: "begin", effect: "read" },
  TRANS_STMT_COMMIT: { kind: "commit", effect: "read" },
  TRANS_STMT_ROLLBACK: { kind: "rollback", effect: "read" },
  TRANS_STMT_SAVEPOINT: { kind: "savepoint", effect: "read" },
  TRANS_STMT_RELEASE: { kind: "release", effect: "read" },
  TRANS_STMT_ROLLBACK_TO: { kind: "rollback", effect: "read" },
};

const kindByType = new Map<string, StatementKind>(
  Object.entries(kindsByEffect).flatMap(([effect, kinds]) =>
    Object.entries(kinds).flatMap(([kind, types]) =>
      types.split(" ").map((type) => [`${type}Stmt`, { kind, effect: effect as ActionEffect }] as const),
    ),
  ),
);

/** The kind of a statement by its type in the tree; one that nobody knows is unknown. */
export function postgresqlKind(type: string, body: Readonly<Record<string, unknown>>): StatementKind {
  if (type === "TransactionStmt")
    return transactionKinds[String(body.kind)] ?? { kind: "transaction", effect: "write" };
  return kindByType.get(type) ?? { kind: "unknown", effect: "unknown" };
}

/** Types of nodes that do nothing by themselves; what stands in them is looked at. Any other makes a statement unknown. */
export const plainNodes: ReadonlySet<string> = new Set(
  (
    "ResTarget ColumnRef A_Const A_Star BoolExpr NullTest BooleanTest CaseExpr CaseWhen CoalesceExpr MinMaxExpr A_ArrayExpr " +
    "A_Indirection A_Indices RowExpr JoinExpr RangeSubselect RangeFunction RangeTableSample WindowDef GroupingSet GroupingFunc " +
    "List String Integer Float Boolean BitString ParamRef SQLValueFunction CollateClause NamedArgExpr Alias SetToDefault " +
    "MultiAssignRef JsonObjectConstructor JsonArrayConstructor JsonKeyValue JsonValueExpr JsonFormat JsonOutput JsonReturning " +
    "JsonFuncExpr JsonTable JsonTableColumn JsonTablePathSpec JsonAggConstructor JsonObjectAgg JsonArrayAgg JsonIsPredicate " +
    "JsonArgument JsonBehavior InferClause OnConflictClause MergeWhenClause CTESearchClause CTECycleClause " +
    "ColumnDef Constraint IndexElem AlterTableCmd DefElem ObjectWithArgs RoleSpec AccessPriv PartitionSpec PartitionElem " +
    "PartitionBoundSpec PartitionCmd VacuumRelation FunctionParameter TableLikeClause ReplicaIdentityStmt StatsElem " +
    "VariableSetStmt GrantStmt TypeName CallStmt"
  ).split(" "),
);

/** Operators that come with PostgreSQL. Others may run anything. */
export const plainOperators: ReadonlySet<string> = new Set(
  (
    "+ - * / % ^ = <> != < > <= >= || | & # ~ << >> |/ ||/ @ ~~ !~~ ~~* !~~* ~* !~ !~* ~>=~ ~<=~ ~<~ ~>~ -> ->> #> #>> @> <@ ? ?| ?& " +
    "&& @@ @@@ @? #- &< &> -|- <-> @-@ ## <<= >>= &&& <^ >^ ?# ?- ?|| ~= <#> <=> <+>"
  ).split(" "),
);
