import type { ActionEffect, SqlDialect } from "../../action/action-fact.ts";
import { pureFunctions } from "./pure-function.ts";

type Effects = Readonly<Partial<Record<ActionEffect, string>>>;

/** Functions that reach beyond the query, each list separated by blanks; a name that ends in `*` is a beginning. */
const effectsByDialect: Readonly<Record<SqlDialect, Effects>> = {
  postgresql: {
    write:
      "nextval setval set_config pg_notify pg_advisory_* pg_try_advisory_* pg_stat_reset* pg_replication_origin_* " +
      "pg_create_restore_point pg_export_snapshot pg_logical_emit_message lowrite brin_* gin_clean_pending_list setseed",
    delete: "lo_unlink pg_drop_replication_slot pg_file_unlink pg_wal_replay_*",
    execute:
      "pg_sleep* pg_terminate_backend pg_cancel_backend pg_reload_conf pg_rotate_logfile* pg_promote pg_switch_wal pg_backup_* " +
      "pg_start_backup pg_stop_backup pg_log_* pg_read_* pg_ls_* pg_stat_file pg_file_* pg_current_logfile lo_* loread " +
      "query_to_xml* cursor_to_xml* table_to_xml* schema_to_xml* database_to_xml* ts_stat ts_rewrite crosstab* connectby " +
      "plpgsql_* plpython* plperl* pltcl* pg_create_* pg_logical_slot_* pg_hba_file_rules pg_show_all_file_settings " +
      "pg_execute_server_program cron.* http_set_curlopt xpath_table dbms_*",
    network:
      "dblink* http http_* net.http_* pg_net.* postgres_fdw_* aws_s3.* aws_lambda.* azure_storage.* inet_connect*",
  },
  mysql: {
    write: "get_lock release_lock release_all_locks set_user_var nextval setval lastval",
    execute:
      "sleep benchmark load_file sys_exec sys_eval sys_get sys_set lib_mysqludf_* master_pos_wait source_pos_wait " +
      "wait_for_executed_gtid_set wait_until_sql_thread_after_gtids sys.* keyring_* mysql_firewall_* group_replication_* " +
      "asynchronous_connection_* xmltype",
    network: "http_get http_post http_request",
  },
  sqlite: {
    execute:
      "load_extension readfile writefile edit fsdir zipfile sqlar_* shell_* eval lsmode fts3_tokenizer sqlite_* " +
      "sql_exec exec system popen",
    network: "http_get http_post http_do http_request",
  },
  mssql: {
    write: "sp_getapplock newsequentialid",
    execute:
      "xp_* sp_* openrowset_bulk fn_get_audit_file sys.fn_get_audit_file sys.fn_xe_file_target_read_file " +
      "fn_xe_file_target_read_file fn_trace_gettable sys.fn_trace_gettable fn_dump_dblog sys.fn_dump_dblog fn_dblog sys.fn_dblog " +
      "sys.dm_os_file_exists sys.dm_os_enumerate_* master..xp_* master.dbo.xp_* msdb.dbo.sp_*",
    network: "openrowset openquery opendatasource",
  },
};

/** The schema in which a server keeps its own functions. */
const ownSchema: Readonly<Record<SqlDialect, string>> = {
  postgresql: "pg_catalog.",
  mysql: "",
  sqlite: "",
  mssql: "sys.",
};

/**
 * The effect of a call by the name of the function in lower case: `read` for built-in functions that are known to be pure,
 * `unknown` for those that nobody knows, those of a schema of one's own among them.
 */
export function sqlFunctionEffect(name: string, dialect: SqlDialect): ActionEffect {
  const schema = ownSchema[dialect];
  const plain = schema !== "" && name.startsWith(schema) ? name.slice(schema.length) : name;
  if (pureFunctions[dialect].has(plain)) return "read";
  const last = plain.slice(plain.lastIndexOf(".") + 1);
  return tables[dialect].find(({ matches }) => matches(plain) || matches(last) || matches(name))?.effect ?? "unknown";
}

interface EffectRow {
  readonly effect: ActionEffect;
  readonly matches: (name: string) => boolean;
}

/** Strictest first, so that a name of two lists has the stricter effect. */
const strictFirst = ["network", "execute", "delete", "write"] as const;

const tables = Object.fromEntries(
  Object.entries(effectsByDialect).map(([dialect, effects]) => [
    dialect,
    strictFirst.map((each) => rowOf(each, effects)),
  ]),
) as unknown as Readonly<Record<SqlDialect, readonly EffectRow[]>>;

function rowOf(effect: ActionEffect, effects: Effects): EffectRow {
  const names = (effects[effect] ?? "").split(" ").filter((each) => each !== "");
  const whole = new Set(names.filter((each) => !each.endsWith("*")));
  const starts = names.filter((each) => each.endsWith("*")).map((each) => each.slice(0, -1));
  return { effect, matches: (name) => whole.has(name) || starts.some((start) => name.startsWith(start)) };
}
