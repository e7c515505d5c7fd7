import { ticketMetaKey } from "../../action/capability-ticket.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { type JsonRpcRequest, metaKey } from "../../action/json-rpc.ts";
import { readTraceContext, type TraceContext, traceparentOf } from "../../action/trace.ts";
import type { Caller } from "./caller.ts";

/** `_meta` keys that control the protocol, not the action; they are relayed and never evaluated. */
const steering: readonly string[] = [
  "progressToken",
  "traceparent",
  "tracestate",
  metaKey.logLevel,
  metaKey.clientCapabilities,
];
/** `_meta` keys that no setting forwards with the action. A ticket is for the gateway only. */
const unpassable: readonly string[] = [...steering, ticketMetaKey];
const maxSteeringText = 512;

/** The prefix of the gateway's own input requests; responses to them are not forwarded. */
export const ownQuestion = "io.agent-governance-gateway/review/";

/** The part of a request's `_meta` that is relayed with the action; `trace`, where given, replaces the client's own. */
export function steeringMeta(request: JsonRpcRequest, trace?: TraceContext): JsonObject {
  const meta = isJsonObject(request.params?._meta) ? request.params._meta : {};
  const kept: Record<string, Json> = {};
  for (const key of steering) {
    const value = Object.hasOwn(meta, key) ? meta[key] : undefined;
    if (trace !== undefined && key === "tracestate") continue;
    if (value !== undefined && isSteering(key, value)) kept[key] = value;
  }
  if (trace === undefined) return kept;
  kept.traceparent = traceparentOf(trace);
  if (trace.state !== undefined) kept.tracestate = trace.state;
  return kept;
}

/**
 * The trace context of a request: from its `_meta`, as in MCP, else from its header. A `tracestate` header is not read:
 * headers of clients reach no upstream.
 */
export function traceOf({ traceparent }: Caller, { params }: JsonRpcRequest): TraceContext | undefined {
  const meta = isJsonObject(params?._meta) ? params._meta : {};
  return readTraceContext(meta.traceparent, meta.tracestate) ?? readTraceContext(traceparent);
}

/** The ticket in a request's `_meta`, unchecked. */
export function ticketMeta({ params }: JsonRpcRequest): Json | undefined {
  const meta = params?._meta;
  return isJsonObject(meta) && Object.hasOwn(meta, ticketMetaKey) ? meta[ticketMetaKey] : undefined;
}

/**
 * The members that a request carries to the upstream beyond its arguments: responses to an interrupted request (stateless
 * revision only), and forwarded `_meta` keys. All of them are evaluated. Undefined where there are none.
 */
export function continuationOf(
  caller: Caller,
  request: JsonRpcRequest,
  passthrough: readonly string[],
): JsonObject | undefined {
  const params = request.params ?? {};
  const carried: Record<string, Json> = {};
  if (caller.era.era === "modern") {
    const responses = withoutOwn(params.inputResponses);
    if (responses !== undefined) carried.inputResponses = responses;
    if (params.requestState !== undefined) carried.requestState = params.requestState;
  }
  const meta = params._meta;
  if (isJsonObject(meta)) {
    const keys = passthrough.filter((key) => !unpassable.includes(key) && Object.hasOwn(meta, key));
    if (keys.length > 0) carried._meta = Object.fromEntries(keys.map((key) => [key, meta[key] as Json]));
  }
  return Object.keys(carried).length === 0 ? undefined : carried;
}

/** Removes responses to the gateway; where no others are left, the request equals the interrupted one. */
function withoutOwn(responses: Json | undefined): Json | undefined {
  if (!isJsonObject(responses)) return responses;
  const entries = Object.entries(responses);
  const others = entries.filter(([key]) => !key.startsWith(ownQuestion));
  if (others.length === entries.length) return responses;
  return others.length === 0 ? undefined : Object.fromEntries(others);
}

function isSteering(key: string, value: Json): boolean {
  if (key === metaKey.clientCapabilities) return isJsonObject(value);
  if (typeof value === "string") return value.length <= maxSteeringText;
  return key === "progressToken" && Number.isInteger(value);
}
