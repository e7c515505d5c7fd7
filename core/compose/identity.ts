import { randomBytes } from "node:crypto";
import { idSource } from "../action/id.ts";
import type { JsonBounds } from "../action/strict-json.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";

/** The name and version that clients and upstreams are given. */
export const identity = { name: "agent-governance-gateway", version: "0.1.0" } as const;

/** UUIDv7. */
export const newId: () => string = idSource(Date.now, randomBytes);

/** A monotonic clock in milliseconds. */
export const elapsedMs: () => number = performance.now.bind(performance);

/** The bounds of what clients send. */
export function jsonBounds(config: GatewayConfig): JsonBounds {
  const { jsonDepth, jsonNodes, jsonStringLength } = config.limits;
  return { depth: jsonDepth, nodes: jsonNodes, stringLength: jsonStringLength, reader: "exact" };
}

/** The same for a body as a whole. */
export function bodyLimits(config: GatewayConfig): { readonly bytes: number; readonly json: JsonBounds } {
  return { bytes: config.limits.bodyBytes, json: jsonBounds(config) };
}
