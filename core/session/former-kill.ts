import type { AbstractBatchOptions } from "abstract-level";
import type { Operation } from "../kernel/operation.ts";
import { killKey, killPrefix } from "./kill.ts";
import type { SessionStore } from "./kill-index.ts";

const mostAtOnce = 1_000;
const durably: AbstractBatchOptions<string, string> & { readonly sync: true } = { sync: true };

/**
 * Moves the kills that a gateway wrote when nothing but sessions could be stopped, `<tenant>/kill/<session>`, to where
 * kills of sessions lie now. Durable when it resolves; who is stopped half way goes on at the next start.
 */
export async function moveFormerKills(store: SessionStore, tenant: string): Promise<void> {
  const prefix = killPrefix(tenant);
  // Every session's id begins so, and no scope does.
  const former = { gte: `${prefix}session-`, lt: `${prefix}session.` };
  for (;;) {
    const entries = await store.iterator({ ...former, limit: mostAtOnce }).all();
    if (entries.length === 0) return;
    const operations = entries.flatMap(([key, value]): Operation[] => {
      const subject = decodeURIComponent(key.slice(prefix.length));
      return [
        { type: "put", key: killKey(tenant, { scope: "session", subject }), value },
        { type: "del", key },
      ];
    });
    await store.batch(operations, durably);
  }
}
