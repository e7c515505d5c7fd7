import type { AbstractBatchOptions } from "abstract-level";
import type { BatchOperation } from "../action/commit-hook.ts";
import { GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Store } from "../store/open.ts";
import { type Kill, killKey, killOfEvent, killPrefix, targetOfEvent } from "./kill.ts";
import type { KillSwitch } from "./kill-switch.ts";

/** An event of kind `session`, and when it was recorded. */
export interface SessionEvent {
  readonly time: string;
  readonly detail: JsonObject;
}

interface RestoreOptions {
  readonly store: Store;
  /** The tenants whose evidence is not refused. */
  readonly tenants: readonly string[];
  /** Reads the session events of a tenant in the order of its chain. */
  readonly events: (tenant: string) => AsyncIterable<SessionEvent>;
  /** Called for a tenant whose events cannot be read: its kills are unknown. */
  readonly refuse: (tenant: string, reason: string) => void;
}

/**
 * Restores the kills that a chain records and the store has no entry of. Where the two disagree, the stricter holds: an
 * entry without its event stops its target too. Where one tenant has the whole gateway stopped, all have.
 */
export async function restoreKills(killSwitch: KillSwitch, options: RestoreOptions): Promise<void> {
  for (const tenant of options.tenants) {
    try {
      await moveFormerKills(options.store, tenant);
      await killSwitch.restore(tenant, await readKills(tenant, options.events(tenant)));
    } catch (cause) {
      options.refuse(tenant, `its kills cannot be read: ${GatewayError.from(cause).message}`);
    }
  }
  await killSwitch.includeNewTenants();
}

const maxEntriesPerBatch = 1_000;
const durably: AbstractBatchOptions<string, string> & { readonly sync: true } = { sync: true };

/**
 * Moves kills from `<tenant>/kill/<session>`, where a former version kept those of sessions, to their present keys. Durable
 * when it resolves; an interrupted move is resumed by the next start.
 */
export async function moveFormerKills(store: Store, tenant: string): Promise<void> {
  const prefix = killPrefix(tenant);
  // The id of every session begins so, and no scope does.
  const former = { gte: `${prefix}session-`, lt: `${prefix}session.` };
  for (;;) {
    const entries = await store.iterator({ ...former, limit: maxEntriesPerBatch }).all();
    if (entries.length === 0) return;
    const operations = entries.flatMap(([key, value]): BatchOperation[] => {
      const subject = decodeURIComponent(key.slice(prefix.length));
      return [
        { type: "put", key: killKey(tenant, { scope: "session", subject }), value },
        { type: "del", key },
      ];
    });
    await store.batch(operations, durably);
  }
}

async function readKills(tenant: string, events: AsyncIterable<SessionEvent>): Promise<Iterable<Kill>> {
  const kills = new Map<string, Kill>();
  for await (const { time, detail } of events) {
    if (detail.event === "released") kills.delete(killKey(tenant, targetOfEvent(detail)));
    if (detail.event === "killed") kills.set(killKey(tenant, targetOfEvent(detail)), killOfEvent(detail, time));
  }
  return kills.values();
}
