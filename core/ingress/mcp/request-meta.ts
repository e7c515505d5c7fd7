import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import type { JsonRpcRequest } from "../../kernel/json-rpc.ts";
import { metaKey } from "../../kernel/mcp.ts";
import type { Caller } from "./caller.ts";

/** `_meta` keys that steer the protocol and say nothing about the action; they are relayed and never judged. */
const steering: readonly string[] = [
  "progressToken",
  "traceparent",
  "tracestate",
  metaKey.logLevel,
  metaKey.clientCapabilities,
];
const longestSteeringText = 512;

/** The members of a request that continue an interrupted one; they reach the upstream, so they are judged. */
const continuing = ["inputResponses", "requestState"] as const;

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

/**
 * What a request carries to the upstream beyond its arguments: the answers to an interrupted request (stateless
 * revision only), and the `_meta` keys the operator lets through. Undefined where there is nothing.
 */
export function continuationOf(
  caller: Caller,
  request: JsonRpcRequest,
  passthrough: readonly string[],
): JsonObject | undefined {
  const params = request.params ?? {};
  const carried: Record<string, Json> = {};
  if (caller.era.era === "modern") {
    for (const name of continuing) if (params[name] !== undefined) carried[name] = params[name];
  }
  const meta = passedMeta(params._meta, passthrough);
  if (meta !== undefined) carried._meta = meta;
  return Object.keys(carried).length === 0 ? undefined : carried;
}

function passedMeta(meta: Json | undefined, passthrough: readonly string[]): JsonObject | undefined {
  if (!isJsonObject(meta)) return undefined;
  const passed = passthrough.filter((key) => !steering.includes(key) && Object.hasOwn(meta, key));
  return passed.length === 0 ? undefined : Object.fromEntries(passed.map((key) => [key, meta[key] as Json]));
}

function isSteering(key: string, value: Json): boolean {
  if (key === metaKey.clientCapabilities) return isJsonObject(value);
  if (typeof value === "string") return value.length <= longestSteeringText;
  return key === "progressToken" && Number.isInteger(value);
}
