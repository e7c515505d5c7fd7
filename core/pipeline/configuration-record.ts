import { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { PolicyRef } from "../kernel/policy.ts";

/** Where events that belong to no action become durable. */
export interface EventLog {
  recordEvent(tenant: string, kind: "configuration", detail: JsonObject): Promise<void>;
}

/** What comes into force, and why it is recorded now. */
export interface ConfigurationChange {
  readonly event: "started" | "reloaded";
  readonly configDigest: string;
  readonly policies: readonly PolicyRef[];
}

/**
 * Puts on the record of every tenant which policies are in force.
 * A tenant whose evidence is refused is refused alone, and told to `onRefused`; where no record at all can be written,
 * this rejects.
 */
export async function recordConfiguration(
  log: EventLog,
  tenants: ReadonlySet<string>,
  change: ConfigurationChange,
  onRefused: (tenant: string, error: GatewayError) => void,
): Promise<void> {
  const { event, configDigest, policies } = change;
  const detail = { event, config_digest: configDigest, policies: policies.map((policy) => ({ ...policy })) };
  let recorded = 0;
  let last: GatewayError | undefined;
  const record = async (tenant: string): Promise<void> => {
    try {
      await log.recordEvent(tenant, "configuration", detail);
      recorded++;
    } catch (cause) {
      last = GatewayError.from(cause);
      onRefused(tenant, last);
    }
  };
  await Promise.all([...tenants].map(record));
  if (recorded === 0 && last !== undefined) throw last;
}
