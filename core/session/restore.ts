import { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import { type Kill, killOf } from "./kill.ts";
import type { KillSwitch } from "./kill-switch.ts";

/** An event of kind `session`, and when it was recorded. */
export interface SessionEvent {
  readonly time: string;
  readonly detail: JsonObject;
}

export interface RestoreParts {
  readonly tenants: readonly string[];
  /** A tenant's session events in the order of its chain. */
  readonly events: (tenant: string) => AsyncIterable<SessionEvent>;
  /** Called for a tenant whose events cannot be read: nobody knows which of its sessions are stopped. */
  readonly refuse: (tenant: string, reason: string) => void;
}

/**
 * Stops again what a tenant's chain says is stopped and the store has no entry of. Where the two disagree, the stricter
 * holds: an entry without its event stops a session too.
 */
export async function restoreKills(killSwitch: KillSwitch, parts: RestoreParts): Promise<void> {
  for (const tenant of parts.tenants) {
    try {
      for (const kill of await readKills(parts.events(tenant))) {
        if (!killSwitch.isKilled(tenant, kill.session)) killSwitch.hold(tenant, kill).catch(() => undefined);
      }
    } catch (cause) {
      parts.refuse(tenant, `its stopped sessions cannot be read: ${GatewayError.from(cause).message}`);
    }
  }
}

async function readKills(events: AsyncIterable<SessionEvent>): Promise<Iterable<Kill>> {
  const kills = new Map<string, Kill>();
  for await (const { time, detail } of events) {
    const { event, session } = detail;
    if (event === "released") kills.delete(String(session));
    if (event === "killed") kills.set(String(session), killOf(detail, time));
  }
  return kills.values();
}
