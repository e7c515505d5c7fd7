import { randomBytes } from "node:crypto";
import { poolRandom, uuidV7 } from "../action/id.ts";
import type { JsonBounds } from "../action/strict-json.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";

/** The name and version that clients and upstreams are given. */
export const identity = { name: "agent-governance-gateway", version: "0.1.0" } as const;

const random = poolRandom(randomBytes);

/** UUIDv7. */
export function newId(): string {
  return uuidV7(Date.now(), random(10));
}

/** The bounds of what clients send. */
export function jsonBounds(config: GatewayConfig): JsonBounds {
  const { jsonDepth, jsonNodes, jsonStringLength } = config.limits;
  return { depth: jsonDepth, nodes: jsonNodes, stringLength: jsonStringLength, reader: "exact" };
}

/** The same for a body as a whole. */
export function bodyLimits(config: GatewayConfig): { readonly bytes: number; readonly json: JsonBounds } {
  return { bytes: config.limits.bodyBytes, json: jsonBounds(config) };
}
