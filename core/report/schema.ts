/** Raised whenever an earlier gateway could not go on with the tables as this one leaves them. */
export const reportFormat = 1;

/**
 * Creates the tables and views of reports where they are missing, and replaces the views by this version's. Everything in the
 * views is derived from the records.
 */
export const reportSchema: string = `
CREATE TABLE IF NOT EXISTS gateway_report (id boolean PRIMARY KEY DEFAULT true CHECK (id), format integer NOT NULL);
INSERT INTO gateway_report (format) VALUES (${reportFormat}) ON CONFLICT DO NOTHING;

-- The last record of each chain that the tables have. A new chain of a tenant has a new name, and begins at its first record.
CREATE TABLE IF NOT EXISTS gateway_feed (
  chain text PRIMARY KEY,
  tenant text NOT NULL,
  seq bigint NOT NULL,
  record text NOT NULL
);

CREATE TABLE IF NOT EXISTS gateway_record (
  chain text NOT NULL,
  seq bigint NOT NULL,
  tenant text NOT NULL,
  kind text NOT NULL,
  time timestamptz NOT NULL,
  session text,
  principal text,
  tool text,
  target text,
  decision text,
  effect text,
  record jsonb NOT NULL,
  PRIMARY KEY (chain, seq)
);
CREATE INDEX IF NOT EXISTS gateway_record_time ON gateway_record (tenant, time);
CREATE INDEX IF NOT EXISTS gateway_record_approval ON gateway_record (tenant, chain, seq)
  WHERE kind = 'approval' OR (kind = 'decision' AND record ? 'approval');
CREATE INDEX IF NOT EXISTS gateway_record_kill ON gateway_record (tenant, time)
  WHERE kind = 'session' AND record #>> '{detail,event}' IN ('killed', 'released');

CREATE TABLE IF NOT EXISTS gateway_usage (
  tenant text NOT NULL,
  day date NOT NULL,
  principal text NOT NULL,
  provider text NOT NULL,
  model text NOT NULL,
  requests bigint NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cached_input_tokens bigint NOT NULL,
  PRIMARY KEY (tenant, day, principal, provider, model)
);

-- One row a held call: its decisions name the approval, and so does each step of its review.
CREATE OR REPLACE VIEW gateway_approval AS
WITH step AS (
  SELECT tenant, chain, seq, time, principal, session, tool, target, record -> 'detail' AS detail,
    CASE kind WHEN 'approval' THEN record #>> '{detail,id}' ELSE record #>> '{approval,id}' END AS id,
    CASE kind WHEN 'approval' THEN record #>> '{detail,event}' ELSE record #>> '{approval,state}' END AS state
  FROM gateway_record
  WHERE kind = 'approval' OR (kind = 'decision' AND record ? 'approval')
)
SELECT
  tenant,
  chain,
  id,
  (array_agg(principal ORDER BY seq) FILTER (WHERE detail IS NULL))[1] AS requested_by,
  (array_agg(session ORDER BY seq) FILTER (WHERE detail IS NULL))[1] AS session,
  (array_agg(tool ORDER BY seq) FILTER (WHERE detail IS NULL))[1] AS tool,
  (array_agg(target ORDER BY seq) FILTER (WHERE detail IS NULL))[1] AS target,
  min(time) FILTER (WHERE state = 'pending') AS requested_at,
  (array_agg(state ORDER BY seq DESC) FILTER (WHERE state NOT IN ('endorsed', 'post_mortem')))[1] AS state,
  (array_agg(detail ->> 'reviewer' ORDER BY seq) FILTER (WHERE state IN ('approved', 'denied') AND detail IS NOT NULL))[1] AS reviewer,
  min(time) FILTER (WHERE state IN ('approved', 'denied') AND detail IS NOT NULL) AS reviewed_at,
  (array_agg(detail ->> 'comment' ORDER BY seq) FILTER (WHERE state IN ('approved', 'denied') AND detail IS NOT NULL))[1] AS comment,
  array_agg(detail ->> 'reviewer' ORDER BY seq) FILTER (WHERE state IN ('endorsed', 'approved') AND detail IS NOT NULL) AS endorsed_by,
  (array_agg(detail #>> '{break_glass,reason}' ORDER BY seq) FILTER (WHERE detail ? 'break_glass'))[1] AS break_glass_reason,
  (array_agg(detail ->> 'text' ORDER BY seq) FILTER (WHERE state = 'post_mortem'))[1] AS post_mortem,
  (array_agg(detail ->> 'reason' ORDER BY seq) FILTER (WHERE state = 'expired'))[1] AS expiry_reason,
  min(time) FILTER (WHERE state = 'consumed') AS used_at
FROM step
WHERE id IS NOT NULL
GROUP BY tenant, chain, id;

-- One row a kill, and one a release. A kill that the gateway made itself was ordered by nobody.
CREATE OR REPLACE VIEW gateway_kill AS
SELECT
  tenant,
  chain,
  seq,
  time,
  record #>> '{detail,event}' AS event,
  coalesce(record #>> '{detail,scope}', 'session') AS scope,
  coalesce(record #>> '{detail,session}', record #>> '{detail,principal}') AS subject,
  record #>> '{detail,by}' AS ordered_by,
  record #>> '{detail,reason}' AS reason,
  record #>> '{detail,note}' AS note
FROM gateway_record
WHERE kind = 'session' AND record #>> '{detail,event}' IN ('killed', 'released');
`;
