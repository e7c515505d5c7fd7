import { createHmac } from "node:crypto";
import type { Parcel } from "./parcel.ts";

/**
 * The headers that Standard Webhooks asks for: who holds one of the keys knows that the body is ours, and from when. The
 * time is that of this attempt, because receivers refuse old ones.
 */
export function signedHeaders({ id, body }: Parcel, keys: readonly Buffer[], nowMs: number): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signatures = keys.map((key) => {
    const mac = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
    return `v1,${mac}`;
  });
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}
