import { ticketMetaKey } from "../../action/capability-ticket.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { type JsonRpcRequest, metaKey } from "../../action/json-rpc.ts";
import { readTraceContext, type TraceContext, traceparentOf } from "../../action/trace.ts";
import type { Caller } from "./caller.ts";

/** `_meta` keys that steer the protocol and say nothing about the action; they are relayed and never judged. */
const steering: readonly string[] = [
  "progressToken",
  "traceparent",
  "tracestate",
  metaKey.logLevel,
  metaKey.clientCapabilities,
];
/** What no setting lets through to an upstream with the action. A ticket is for the gateway alone. */
const unpassable: readonly string[] = [...steering, ticketMetaKey];
const maxSteeringText = 512;

/** With what the gateway's own questions begin; an answer to one is for nobody else. */
export const ownQuestion = "io.agent-governance-gateway/review/";

/** The part of a request's `_meta` that is relayed beside the action. */
export function steeringMeta(request: JsonRpcRequest): JsonObject {
  const meta = isJsonObject(request.params?._meta) ? request.params._meta : {};
  const kept: Record<string, Json> = {};
  for (const key of steering) {
    const value = Object.hasOwn(meta, key) ? meta[key] : undefined;
    if (value !== undefined && isSteering(key, value)) kept[key] = value;
  }
  return kept;
}

/** The same with the trace as it stands here, in the place of what the client said of its own. */
export function relayedMeta(request: JsonRpcRequest, trace: TraceContext | undefined): JsonObject {
  const said = steeringMeta(request);
  if (trace === undefined) return said;
  const { tracestate: _, ...kept } = said;
  const { state } = trace;
  return { ...kept, traceparent: traceparentOf(trace), ...(state === undefined ? {} : { tracestate: state }) };
}

/**
 * What a request says of its trace: in its `_meta`, as MCP has it, else in its header. No header's `tracestate` is read:
 * what a client says in headers reaches no upstream.
 */
export function traceOf({ traceparent }: Caller, { params }: JsonRpcRequest): TraceContext | undefined {
  const meta = isJsonObject(params?._meta) ? params._meta : {};
  return readTraceContext(meta.traceparent, meta.tracestate) ?? readTraceContext(traceparent);
}

/** The ticket in a request's `_meta`, whatever it is. */
export function ticketMeta({ params }: JsonRpcRequest): Json | undefined {
  const meta = params?._meta;
  return isJsonObject(meta) && Object.hasOwn(meta, ticketMetaKey) ? meta[ticketMetaKey] : undefined;
}

/**
 * What a request carries to the upstream beyond its arguments: the answers to an interrupted request (stateless
 * revision only), and the `_meta` keys the operator lets through. All of it is judged. Undefined where there is nothing.
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
  const meta = passedMeta(params._meta, passthrough);
  if (meta !== undefined) carried._meta = meta;
  return Object.keys(carried).length === 0 ? undefined : carried;
}

/** Answers to the gateway go no further; where there are no others, the request is the one that was interrupted. */
function withoutOwn(responses: Json | undefined): Json | undefined {
  if (!isJsonObject(responses)) return responses;
  const entries = Object.entries(responses);
  const others = entries.filter(([key]) => !key.startsWith(ownQuestion));
  if (others.length === entries.length) return responses;
  return others.length === 0 ? undefined : Object.fromEntries(others);
}

function passedMeta(meta: Json | undefined, passthrough: readonly string[]): JsonObject | undefined {
  if (!isJsonObject(meta)) return undefined;
  const passed = passthrough.filter((key) => !unpassable.includes(key) && Object.hasOwn(meta, key));
  return passed.length === 0 ? undefined : Object.fromEntries(passed.map((key) => [key, meta[key] as Json]));
}

function isSteering(key: string, value: Json): boolean {
  if (key === metaKey.clientCapabilities) return isJsonObject(value);
  if (typeof value === "string") return value.length <= maxSteeringText;
  return key === "progressToken" && Number.isInteger(value);
}
