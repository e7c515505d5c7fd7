import type { ActionEffect } from "../../action/action-fact.ts";
import type { StatementKind } from "./postgresql-statement.ts";

/** Types of statements in DataFusion's tree by effect, as `kind: types`; `Create*`, `Alter*` and `Show*` below. */
const kindsByEffect: Readonly<Partial<Record<ActionEffect, Readonly<Record<string, string>>>>> = {
  read: {
    select: "Query",
    show: "",
    describe: "ExplainTable",
    explain: "Explain",
    begin: "StartTransaction",
    commit: "Commit",
    rollback: "Rollback",
    savepoint: "Savepoint",
    release: "ReleaseSavepoint",
    copy: "Copy",
  },
  write: {
    insert: "Insert",
    update: "Update",
    merge: "Merge",
    create:
      "CreateTable CreateView CreateIndex CreateSchema CreateDatabase CreateSequence CreateRole CreateType CreatePolicy CreateDomain CreateUser",
    alter: "AlterTable AlterView AlterIndex AlterRole AlterType AlterPolicy AlterSchema AlterUser",
    grant: "Grant Revoke Deny",
    comment: "Comment",
    set: "Set Reset",
    vacuum: "Vacuum Analyze",
    lock: "Lock LockTables",
    unlock: "UnlockTables",
    listen: "LISTEN",
    notify: "NOTIFY",
    unlisten: "UNLISTEN",
    discard: "Discard",
    deallocate: "Deallocate",
    optimize: "OptimizeTable",
    flush: "Flush",
    rename: "RenameTable",
    use: "Use",
  },
  delete: {
    delete: "Delete",
    drop: "Drop DropFunction DropDomain DropProcedure DropTrigger DropPolicy DropExtension DropOperator",
    truncate: "Truncate",
  },
  execute: {
    call: "Call",
    create:
      "CreateFunction CreateProcedure CreateTrigger CreateExtension CreateVirtualTable CreateOperator CreateMacro",
    alter: "AlterFunction AlterOperator",
    load: "Load LoadData",
    kill: "Kill",
    attach: "AttachDatabase",
    waitfor: "WaitFor",
  },
  network: { create: "CreateServer" },
  unknown: {
    execute: "Execute",
    prepare: "Prepare",
    declare: "Declare",
    fetch: "Fetch",
    close: "Close",
    pragma: "Pragma",
  },
};

const kindByType = new Map<string, StatementKind>(
  Object.entries(kindsByEffect).flatMap(([effect, kinds]) =>
    Object.entries(kinds).flatMap(([kind, types]) =>
      types.split(" ").map((type) => [type, { kind, effect: effect as ActionEffect }] as const),
    ),
  ),
);

/** The kind of a statement by its type in the tree; one that nobody knows is unknown. */
export function dialectKind(type: string): StatementKind {
  const known = kindByType.get(type);
  if (known !== undefined) return known;
  if (type.startsWith("Show")) return { kind: "show", effect: "read" };
  return { kind: "unknown", effect: "unknown" };
}

/** Members of a reading statement that do nothing by themselves; any other that is set makes it unknown. */
export const plainMembers: ReadonlySet<string> = new Set(
  (
    "body Select Query Values SetOperation Table left right op set_quantifier rows content explicit_row value_keyword table_name " +
    "schema_name order_by kind Expressions All options asc nulls_first with_fill limit_clause LimitOffset OffsetCommaLimit limit " +
    "offset value rows limit_by fetch with_ties percent quantity Constant Expr distinct On Distinct top top_before_distinct " +
    "projection UnnamedExpr ExprWithAlias expr from relation joins global join_operator Join Inner Left LeftOuter Right RightOuter " +
    "FullOuter CrossJoin CrossApply OuterApply Using Natural Semi Anti selection group_by having named_window Derived lateral subquery " +
    "NestedJoin table_with_joins TableFunction UNNEST array_exprs with_offset with_ordinality JsonTable json_expr columns " +
    "Named Nested ForOrdinality OpenJsonTable Pivot Unpivot table aggregate_functions value_column value_source List name null_inclusion " +
    "default_on_null version ForSystemTimeAsOf sample BeforeTableAlias AfterTableAlias modifier parenthesized unit seed " +
    "BinaryOp UnaryOp Prefixed IsNull IsNotNull IsTrue IsFalse IsNotTrue IsNotFalse IsUnknown IsNotUnknown IsDistinctFrom " +
    "IsNotDistinctFrom InList InSubquery InUnnest Between Like ILike SimilarTo RLike regexp any pattern escape_char negated low " +
    "high list array_expr Case operand conditions condition result else_result Cast TryCast SafeCast Convert charset " +
    "target_before_value is_try styles format Extract field syntax Substring substring_from substring_for special shorthand Trim " +
    "trim_where trim_what trim_characters Position in Overlay overlay_what overlay_from overlay_for Ceil Floor Collate " +
    "Exists Subquery Tuple Array elem named ArrayAgg AnyOp AllOp compare_op is_some AtTimeZone timestamp time_zone Interval " +
    "leading_field leading_precision last_field fractional_seconds_precision TypedString uses_odbc_syntax CompoundFieldAccess root " +
    "access_chain Subscript Index index Slice lower_bound upper_bound stride Dot JsonAccess CompositeAccess key GroupingSets Rollup Cube MatchAgainst " +
    "opt_search_modifier args clauses duplicate_treatment Unnamed ExprNamed arg operator OrderBy Limit OnOverflow " +
    "NullClause IgnoreOrRespectNulls JsonNullClause filter over WindowSpec NamedExpr partition_by window_frame units " +
    "start_bound end_bound Preceding Following within_group null_treatment parameters Wildcard QualifiedWildcard " +
    "returning assignments target ColumnName tuple Tuple AfterSet BeforeSet using WithFromKeyword WithoutKeyword source TableName " +
    "on OnConflict DuplicateKeyUpdate action DoUpdate DoNothing Columns OnConstraint overwrite ignore or has_table_keyword into_token " +
    "table_alias insert_alias priority after_columns row_alias output replace_into"
  ).split(" "),
);

/** Members in which there are only names, types and positions. */
export const inertMembers: ReadonlySet<string> = new Set(
  (
    "span alias Identifier CompoundIdentifier data_type type quote_style optimizer_hints select_modifiers flavor for_clause " +
    "index_hints partitions Value match_value value_alias keyword collation json_path path conflict_target cast_kind wildcard_token QualifiedWildcard NamedWindow window_name Separator"
  ).split(" "),
);

/** Signs whose meaning is the server's own. */
export const plainBinaryOperators: ReadonlySet<string> = new Set(
  (
    "Plus Minus Multiply Divide Modulo StringConcat Gt Lt GtEq LtEq Spaceship Eq NotEq And Or Xor BitwiseOr BitwiseAnd BitwiseXor " +
    "DuckIntegerDivide MyIntegerDivide Match Regexp DoubleHash PGBitwiseXor PGBitwiseShiftLeft PGBitwiseShiftRight PGExp PGOverlap " +
    "PGRegexMatch PGRegexIMatch PGRegexNotMatch PGRegexNotIMatch PGLikeMatch PGILikeMatch PGNotLikeMatch PGNotILikeMatch PGStartsWith " +
    "Arrow LongArrow HashArrow HashLongArrow AtAt AtArrow ArrowAt HashMinus AtQuestion Question QuestionAnd QuestionPipe Overlaps " +
    "LtDashGt AndLt AndGt LtLtPipe PipeGtGt AndLtPipe PipeAndGt LtCaret GtCaret QuestionHash QuestionDash QuestionDashPipe " +
    "QuestionDoublePipe At TildeEq MyRegexp"
  ).split(" "),
);
