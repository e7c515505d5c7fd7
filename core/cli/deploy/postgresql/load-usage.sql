-- Reads what `gateway usage --json` prints from standard input, of the tenant that the variable `tenant` names. Counts of
-- a day that is not over take the place of earlier ones.
\set ON_ERROR_STOP on
CREATE TEMPORARY TABLE report (body jsonb);
\copy report FROM pstdin WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
INSERT INTO gateway_usage
SELECT
  :'tenant',
  (item ->> 'day')::date,
  item ->> 'principal',
  item ->> 'provider',
  item ->> 'model',
  (item ->> 'requests')::bigint,
  (item ->> 'input_tokens')::bigint,
  (item ->> 'output_tokens')::bigint,
  (item ->> 'cached_input_tokens')::bigint
FROM report, jsonb_array_elements(body -> 'items') AS item
ON CONFLICT (tenant, day, principal, provider, model) DO UPDATE SET
  requests = EXCLUDED.requests,
  input_tokens = EXCLUDED.input_tokens,
  output_tokens = EXCLUDED.output_tokens,
  cached_input_tokens = EXCLUDED.cached_input_tokens;
