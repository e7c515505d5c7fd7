import type { SqlOpinion } from "./opinion.ts";
import { isSign, type SqlToken } from "./token.ts";

/** Pragmas that report something, whatever their argument is. */
const reporting = new Set(
  (
    "table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list database_list collation_list " +
    "function_list module_list pragma_list compile_options integrity_check quick_check foreign_key_check"
  ).split(" "),
);
/** Pragmas that report a setting where they are given no value. */
const settings = new Set(
  (
    "user_version application_id schema_version page_size page_count freelist_count encoding journal_mode foreign_keys " +
    "cache_size synchronous auto_vacuum busy_timeout data_version locking_mode temp_store recursive_triggers max_page_count"
  ).split(" "),
);

/**
 * Reads a PRAGMA of SQLite by its tokens, because the parser knows few of them: a reading one has one of a few names, and only
 * those that report may have an argument. Returns null for another statement.
 */
export function readPragma(statement: readonly SqlToken[]): SqlOpinion | null {
  const [verb, ...rest] = statement;
  if (verb?.type !== "word" || verb.text !== "pragma") return null;
  const [name, ...args] = isSign(rest[1], ".") ? rest.slice(2) : rest;
  const text = name?.type === "word" ? name.text : "";
  const hasArgument = args.length === 3 && isSign(args[0], "(") && isSign(args[2], ")") && args[1]?.type !== "sign";
  const isReading =
    (reporting.has(text) && (args.length === 0 || hasArgument)) || (settings.has(text) && args.length === 0);
  return {
    kind: "pragma",
    effect: isReading ? "read" : "unknown",
    read: new Set(),
    written: new Set(),
    functions: new Set(),
    hasWhere: false,
    whereIsConstant: false,
    into: false,
    locking: false,
  };
}
