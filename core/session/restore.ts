import { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import { type Kill, killKey, killTold, targetTold } from "./kill.ts";
import type { KillSwitch } from "./kill-switch.ts";

/** An event of kind `session`, and when it was recorded. */
export interface SessionEvent {
  readonly time: string;
  readonly detail: JsonObject;
}

export interface RestoreParts {
  /** Those whose evidence is not refused. */
  readonly tenants: readonly string[];
  /** A tenant's session events in the order of its chain. */
  readonly events: (tenant: string) => AsyncIterable<SessionEvent>;
  /** Called for a tenant whose events cannot be read: nobody knows what of it is stopped. */
  readonly refuse: (tenant: string, reason: string) => void;
}

/**
 * Stops again what a tenant's chain says is stopped and the store has no entry of. Where the two disagree, the stricter
 * holds: an entry without its event stops what it names too. Where one tenant has the whole gateway stopped, all have.
 */
export async function restoreKills(killSwitch: KillSwitch, parts: RestoreParts): Promise<void> {
  for (const tenant of parts.tenants) {
    try {
      await killSwitch.restore(tenant, await readKills(tenant, parts.events(tenant)));
    } catch (cause) {
      parts.refuse(tenant, `what is stopped cannot be read: ${GatewayError.from(cause).message}`);
    }
  }
  await killSwitch.welcomeTenants();
}

async function readKills(tenant: string, events: AsyncIterable<SessionEvent>): Promise<Iterable<Kill>> {
  const kills = new Map<string, Kill>();
  for await (const { time, detail } of events) {
    if (detail.event === "released") kills.delete(killKey(tenant, targetTold(detail)));
    if (detail.event === "killed") kills.set(killKey(tenant, targetTold(detail)), killTold(detail, time));
  }
  return kills.values();
}
