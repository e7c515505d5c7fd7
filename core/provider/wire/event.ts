import { GatewayError } from "../../kernel/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import type { ModelApi } from "../../kernel/model-api.ts";
import { type JsonBounds, parseStrictText } from "../../kernel/strict-json.ts";

/** One event of a server-sent stream. */
export interface WireEvent {
  readonly event?: string;
  readonly data: string;
  /** The exact bytes, with the blank line that ends it. */
  readonly raw: Uint8Array;
  /** What the bytes say beside `event` and `data`: comments, ids, fields that the standard does not know. */
  readonly rest?: string;
  /** It carries no data at all: clients skip it, and only its bytes matter. */
  readonly keepAlive?: true;
}

/** How the chat API ends a stream; the only event of either API whose data is not JSON. */
export const doneData = "[DONE]";

const bounds: JsonBounds = { depth: 64, nodes: 100_000, stringLength: 1024 * 1024, reader: "tolerant" };

/** The object that an event carries; PROVIDER_INVALID for anything else. */
export function eventObject(event: WireEvent): JsonObject {
  let value: Json;
  try {
    value = parseStrictText(event.data, bounds);
  } catch (cause) {
    throw new GatewayError("PROVIDER_INVALID", GatewayError.from(cause).publicMessage, { cause });
  }
  if (!isJsonObject(value)) throw new GatewayError("PROVIDER_INVALID", "expected an object in the event, got another");
  return value;
}

/** An event that says this. The messages API names each event by the `type` of its data; the chat API names none. */
export function jsonEvent(api: ModelApi, data: JsonObject): WireEvent {
  return api === "messages" ? textEvent(JSON.stringify(data), data.type as string) : textEvent(JSON.stringify(data));
}

export function textEvent(data: string, event?: string): WireEvent {
  const raw = Buffer.from(`${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`);
  return { ...(event === undefined ? {} : { event }), data, raw };
}

/** Bytes that keep a connection alive and say nothing. */
export function keepAliveEvent(): WireEvent {
  return { data: "", raw: Buffer.from(": ping\n\n"), keepAlive: true };
}
