import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { PolicyRef } from "../action/policy.ts";

/** An event that concerns every tenant alike. */
export interface SharedEvent {
  readonly kind: "configuration" | "extension" | "clock";
  readonly detail: JsonObject;
}

/** Records events that belong to no action. */
interface EventLog {
  recordEvent(tenant: string, kind: SharedEvent["kind"], detail: JsonObject): Promise<void>;
}

/**
 * Records events in the chain of every tenant, in order.
 * A tenant whose evidence is refused is refused alone, and reported to `onRefused`; where no record at all can be written,
 * this rejects.
 */
export async function recordForTenants(
  log: EventLog,
  tenants: ReadonlySet<string>,
  events: readonly SharedEvent[],
  onRefused: (tenant: string, error: GatewayError) => void,
): Promise<void> {
  let recorded = 0;
  let last: GatewayError | undefined;
  const record = async (tenant: string): Promise<void> => {
    try {
      for (const { kind, detail } of events) await log.recordEvent(tenant, kind, detail);
      recorded++;
    } catch (cause) {
      last = GatewayError.from(cause);
      onRefused(tenant, last);
    }
  };
  await Promise.all([...tenants].map(record));
  if (recorded === 0 && last !== undefined) throw last;
}

/** A configuration that comes into force, and the event that records it. */
interface ConfigurationChange {
  readonly event: "started" | "reloaded";
  readonly configDigest: string;
  readonly policies: readonly PolicyRef[];
}

/** The record of which policies are in force. */
export function configurationEvent({ event, configDigest, policies }: ConfigurationChange): SharedEvent {
  const detail = { event, config_digest: configDigest, policies: policies.map((policy) => ({ ...policy })) };
  return { kind: "configuration", detail };
}
