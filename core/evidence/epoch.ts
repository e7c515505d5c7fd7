import { GatewayError } from "../kernel/error.ts";
import { durably, type EvidenceStore, epochKey } from "./key-space.ts";

/** The epoch of this process: one more than the last, on disk before any record carries it. */
export async function takeEpoch(store: EvidenceStore): Promise<number> {
  const epoch = Number((await store.get(epochKey)) ?? 0) + 1;
  if (!Number.isSafeInteger(epoch)) throw new GatewayError("STATE_UNUSABLE", "expected `epoch` to be a number");
  await store.put(epochKey, String(epoch), durably);
  return epoch;
}
