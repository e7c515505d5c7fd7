-- What a gateway recorded and what its tenants used, for reports. Not evidence: what is evidence is the chain, and an
-- export that verifies.
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
