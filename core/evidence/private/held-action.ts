import type { BatchOperation } from "../../action/commit-hook.ts";
import { GatewayError } from "../../action/error.ts";
import type { Random } from "../../action/id.ts";
import type { WrappingKey } from "../key/wrapping-key.ts";
import { recordKey } from "../record/key-space.ts";
import type { Reader } from "../record/store-view.ts";
import type { DisclosurePlace } from "./private-field.ts";

/** Seals the text of a held action beside the decision that held it: its arguments are private. */
export function sealHeld(key: WrappingKey, place: DisclosurePlace, text: string, random: Random): BatchOperation {
  const value = key.wrap(Buffer.from(text), heldPlace(place), random);
  return { type: "put", key: recordKey(place.tenant, place.seq, "held"), value };
}

/** Opens the text; undefined where it is no longer kept. Throws EVIDENCE_UNAVAILABLE where the chain's key does not open it. */
export async function openHeld(reader: Reader, key: WrappingKey, place: DisclosurePlace): Promise<string | undefined> {
  const sealed = await reader.get(recordKey(place.tenant, place.seq, "held"));
  if (sealed === undefined) return undefined;
  const plain = key.unwrap(sealed, heldPlace(place));
  if (plain !== undefined) return plain.toString();
  throw new GatewayError(
    "EVIDENCE_UNAVAILABLE",
    `the action held at record ${place.seq} of tenant \`${place.tenant}\` is damaged`,
  );
}

export function releaseHeld(tenant: string, seq: number): BatchOperation {
  return { type: "del", key: recordKey(tenant, seq, "held") };
}

function heldPlace({ chain, seq }: DisclosurePlace): string {
  return `evidence-held-action-v1\n${chain}\n${seq}`;
}
