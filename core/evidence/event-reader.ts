import { GatewayError } from "../kernel/error.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import { parseKept } from "../kernel/kept-json.ts";
import { type EvidenceStore, eventRange, recordKey, seqIn } from "./key-space.ts";
import type { EventKind } from "./record.ts";

/** What an event's record says, and when it was recorded. */
export interface ToldEvent {
  readonly time: string;
  readonly detail: JsonObject;
}

const readAtOnce = 500;

/**
 * A tenant's events of one kind, in the order of its chain; those whose records were pruned are left out. Rejects with
 * EVIDENCE_UNAVAILABLE for a record that is none of that kind. Whether the chain is sound, `verify` says.
 */
export async function* readEvents(store: EvidenceStore, tenant: string, kind: EventKind): AsyncGenerator<ToldEvent> {
  const keys = store.keys(eventRange(tenant, kind));
  try {
    for (;;) {
      const some = await keys.nextv(readAtOnce);
      if (some.length === 0) return;
      const texts = await store.getMany(some.map((key) => recordKey(tenant, seqIn(key))));
      for (const text of texts) if (text !== undefined) yield readEvent(text, tenant, kind);
    }
  } finally {
    await keys.close();
  }
}

function readEvent(text: string, tenant: string, kind: EventKind): ToldEvent {
  const record = parseKept(text);
  if (isJsonObject(record) && record.kind === kind && typeof record.time === "string" && isJsonObject(record.detail)) {
    return { time: record.time, detail: record.detail };
  }
  throw new GatewayError("EVIDENCE_UNAVAILABLE", `events of tenant \`${tenant}\` do not match its chain`);
}
