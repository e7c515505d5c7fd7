-- Reads the export of a session, JSON Lines, from standard input. A record that is there already stays as it is.
\set ON_ERROR_STOP on
CREATE TEMPORARY TABLE line (body jsonb);
-- Neither character comes in JSON, so that each line is one value.
\copy line FROM pstdin WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
INSERT INTO gateway_record
SELECT
  record ->> 'chain',
  (record ->> 'seq')::bigint,
  record ->> 'tenant',
  record ->> 'kind',
  (record ->> 'time')::timestamptz,
  record #>> '{session,id}',
  record #>> '{principal,id}',
  record #>> '{action,tool}',
  record #>> '{action,target}',
  record #>> '{evaluation,decision}',
  record ->> 'effect',
  record
FROM (SELECT body -> 'record' AS record FROM line WHERE body ? 'record') AS export
ON CONFLICT DO NOTHING;
