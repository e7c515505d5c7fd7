import type { SqlDialect } from "../../action/action-fact.ts";

/** Functions of every dialect: aggregates, windows and arithmetic, which read what they are given and nothing else. */
const common =
  "count sum avg min max abs ceil ceiling floor round sign sqrt exp ln log log10 power pi sin cos tan asin acos atan atan2 " +
  "degrees radians coalesce nullif lower upper trim ltrim rtrim replace substring reverse concat concat_ws left right ascii " +
  "row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value stddev stddev_pop " +
  "stddev_samp variance var_pop var_samp cast current_timestamp current_date current_time current_user session_user grouping exists";

/**
 * INVARIANT: a function is here only if no argument makes it write, lock, wait, run text as a query, or reach a file, a
 * program or a host. What is left out costs a question.
 */
const own: Readonly<Record<SqlDialect, string>> = {
  postgresql:
    "localtime localtimestamp current_role current_catalog current_schema current_schemas user current_database version " +
    "now clock_timestamp statement_timestamp transaction_timestamp timeofday age date_part date_trunc date_bin extract " +
    "make_date make_time make_timestamp make_timestamptz make_interval justify_days justify_hours justify_interval isfinite " +
    "to_char to_date to_number to_timestamp timezone date timestamp overlaps " +
    "cbrt div mod gcd lcm factorial trunc random scale min_scale trim_scale width_bucket cot sinh cosh tanh erf gamma " +
    "bit_length char_length character_length octet_length length overlay position strpos substr btrim chr initcap lpad rpad " +
    "md5 sha224 sha256 sha384 sha512 encode decode format parse_ident quote_ident quote_literal quote_nullable repeat " +
    "regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array " +
    "regexp_split_to_table regexp_substr split_part starts_with string_to_array string_to_table to_ascii to_hex to_bin to_oct " +
    "translate normalize like ilike similar_to_escape like_escape unistr convert_from convert_to get_bit get_byte set_bit " +
    "set_byte bit_count array_agg bool_and bool_or every bit_and bit_or bit_xor string_agg json_agg jsonb_agg " +
    "json_object_agg jsonb_object_agg xmlagg any_value range_agg corr covar_pop covar_samp regr_avgx regr_avgy regr_count " +
    "regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy mode percentile_cont percentile_disc array_append array_cat " +
    "array_dims array_fill array_length array_lower array_ndims array_position array_positions array_prepend array_remove " +
    "array_replace array_sample array_shuffle array_to_string array_upper cardinality trim_array unnest generate_series " +
    "generate_subscripts greatest least num_nulls num_nonnulls row to_json to_jsonb row_to_json array_to_json " +
    "json_array_length json_array_elements json_array_elements_text json_build_array json_build_object json_each json_each_text " +
    "json_extract_path json_extract_path_text json_object json_object_keys json_populate_record json_populate_recordset " +
    "json_strip_nulls json_to_record json_to_recordset json_typeof json_array json_scalar json_exists json_query json_value " +
    "jsonb_array_length jsonb_array_elements jsonb_array_elements_text jsonb_build_array jsonb_build_object jsonb_each " +
    "jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_keys " +
    "jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_populate_record " +
    "jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof " +
    "to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_headline ts_rank ts_rank_cd setweight " +
    "strip numnode querytree similarity word_similarity strict_word_similarity show_trgm levenshtein soundex metaphone unaccent " +
    "gen_random_uuid uuid_generate_v4 uuidv4 uuidv7 currval lastval pg_typeof pg_column_size pg_encoding_to_char pg_size_pretty pg_size_bytes " +
    "pg_relation_size pg_table_size pg_indexes_size pg_total_relation_size pg_database_size pg_get_viewdef pg_get_functiondef " +
    "pg_get_indexdef pg_get_constraintdef pg_get_expr pg_get_userbyid pg_get_serial_sequence pg_get_triggerdef pg_get_ruledef " +
    "format_type obj_description col_description shobj_description to_regclass to_regtype to_regproc pg_backend_pid " +
    "pg_postmaster_start_time pg_is_in_recovery pg_blocking_pids has_table_privilege has_column_privilege " +
    "has_schema_privilege has_database_privilege has_function_privilege pg_has_role pg_table_is_visible current_setting " +
    "inet_server_addr inet_server_port inet_client_addr inet_client_port host network netmask broadcast masklen family hostmask " +
    "inet_same_family lower_inc upper_inc isempty range_merge int4range int8range numrange tsrange tstzrange daterange " +
    "st_distance st_dwithin st_contains st_within st_intersects st_area st_length st_x st_y st_makepoint st_setsrid " +
    "st_transform st_astext st_asgeojson st_geomfromtext st_point st_buffer st_centroid text int4 int8 float8 numeric bool " +
    "enum_first enum_last enum_range xmlelement xmlforest xpath xpath_exists pg_index_size array ordinality",
  mysql:
    "adddate addtime aes_encrypt aes_decrypt any_value bin bin_to_uuid bit_and bit_count bit_length bit_or bit_xor char " +
    "char_length character_length charset collation coercibility compress connection_id conv convert convert_tz cot crc32 curdate " +
    "current_role curtime database schema user system_user version date date_add date_format date_sub datediff day dayname " +
    "dayofmonth dayofweek dayofyear elt export_set extract field find_in_set format format_bytes found_rows from_base64 " +
    "from_days from_unixtime get_format greatest group_concat hex hour if ifnull inet_aton inet_ntoa inet6_aton inet6_ntoa insert " +
    "instr interval is_ipv4 is_ipv6 is_uuid isnull json_array json_arrayagg json_array_append json_array_insert json_contains " +
    "json_contains_path json_depth json_extract json_insert json_keys json_length json_merge json_merge_patch " +
    "json_merge_preserve json_object json_objectagg json_overlaps json_pretty json_quote json_remove json_replace json_search " +
    "json_set json_storage_size json_type json_unquote json_valid json_value last_day lcase least length localtime " +
    "localtimestamp locate log2 lpad make_set makedate maketime match md5 microsecond mid minute mod month monthname now oct " +
    "octet_length ord period_add period_diff position pow quarter quote rand regexp_instr regexp_like regexp_replace " +
    "regexp_substr repeat row_count rpad sec_to_time second sha sha1 sha2 soundex space std str_to_date strcmp subdate substr " +
    "substring_index subtime sysdate time time_format time_to_sec timediff timestamp timestampadd timestampdiff to_base64 " +
    "to_days to_seconds truncate ucase uncompress unhex unix_timestamp utc_date utc_time utc_timestamp uuid uuid_short " +
    "uuid_to_bin values week weekday weekofyear weight_string year yearweek st_distance st_contains st_within st_astext " +
    "st_geomfromtext st_x st_y point is_used_lock is_free_lock",
  sqlite:
    "char format glob group_concat string_agg hex ifnull iif if instr last_insert_rowid length like likelihood likely unlikely " +
    "changes total_changes mod octet_length printf quote random randomblob soundex sqlite_version sqlite_source_id " +
    "sqlite_compileoption_get sqlite_compileoption_used substr subtype total trunc typeof unhex unicode unistr zeroblob " +
    "date time datetime julianday unixepoch strftime timediff json jsonb json_array jsonb_array json_array_length json_error_position " +
    "json_extract jsonb_extract json_insert json_object jsonb_object json_patch json_pretty json_remove json_replace json_set " +
    "json_type json_valid json_quote json_group_array json_group_object json_each json_tree jsonb_each jsonb_tree " +
    "generate_series highlight snippet bm25 matchinfo offsets pragma_table_info pragma_table_xinfo pragma_table_list " +
    "pragma_index_list pragma_index_info pragma_index_xinfo pragma_foreign_key_list pragma_database_list pragma_collation_list " +
    "pragma_function_list pragma_compile_options median percentile percentile_cont percentile_disc log2 sinh cosh tanh " +
    "acosh asinh atanh pow",
  mssql:
    "approx_count_distinct checksum_agg count_big grouping_id stdev stdevp string_agg var varp convert try_cast try_convert " +
    "parse try_parse char charindex difference format len nchar patindex quotename replicate soundex space str " +
    "string_escape string_split stuff translate unicode datalength getdate getutcdate sysdatetime sysdatetimeoffset " +
    "sysutcdatetime datename datepart day month year datefromparts datetimefromparts datetime2fromparts timefromparts datediff " +
    "datediff_big dateadd eomonth switchoffset todatetimeoffset isdate date_bucket datetrunc at_time_zone choose iif isnull " +
    "greatest least isjson json_value json_query json_object json_array json_modify json_path_exists json_objectagg json_arrayagg " +
    "openjson acos cot log rand square atn2 newid db_id db_name schema_id schema_name object_id object_name " +
    "object_schema_name object_definition col_name col_length columnproperty objectproperty databasepropertyex serverproperty " +
    "type_id type_name suser_sname suser_name suser_id user user_name user_id system_user original_login host_name app_name " +
    "has_perms_by_name is_member is_srvrolemember is_rolemember isnumeric scope_identity ident_current rowcount_big hashbytes " +
    "checksum binary_checksum compress decompress generate_series error_message error_number xact_state index_col " +
    "indexproperty stats_date current_timezone connectionproperty session_context context_info formatmessage min_active_rowversion " +
    "contains freetext fn_my_permissions dm_exec_sql_text dm_exec_query_plan",
};

export const pureFunctions = Object.fromEntries(
  Object.entries(own).map(([dialect, names]) => [dialect, new Set(`${common} ${names}`.split(" "))]),
) as unknown as Readonly<Record<SqlDialect, ReadonlySet<string>>>;
