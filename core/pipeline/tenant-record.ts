import { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";

/** An event that concerns every tenant alike. */
export interface SharedEvent {
  readonly kind: "configuration" | "extension";
  readonly detail: JsonObject;
}

/** Where events that belong to no action become durable. */
export interface EventLog {
  recordEvent(tenant: string, kind: SharedEvent["kind"], detail: JsonObject): Promise<void>;
}

/**
 * Puts events on the record of every tenant, in order.
 * A tenant whose evidence is refused is refused alone, and told to `onRefused`; where no record at all can be written,
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
