import { randomBytes } from "node:crypto";
import { uptime } from "node:os";
import { idSource } from "../action/id.ts";
import type { JsonBounds } from "../action/strict-json.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import type { MachineTime } from "../observe/gateway-clock.ts";
import type { BodyLimits } from "../operation/operation.ts";

/** The name and version that clients and upstreams are given. */
export const identity = { name: "agent-governance-gateway", version: "0.1.0" } as const;

/** UUIDv7. */
export const newId: () => string = idSource(Date.now, randomBytes);

/** A monotonic clock in milliseconds. */
export const elapsedMs: () => number = performance.now.bind(performance);

/** The clocks of this machine. */
export const machineTime: MachineTime = { wallMs: Date.now, elapsedMs, uptimeMs: () => uptime() * 1_000 };

/** The bounds of what clients send, but for model requests. */
export function jsonBounds({ limits }: GatewayConfig): JsonBounds {
  const { jsonDepth, jsonMembers, jsonNodes, jsonStringLength } = limits;
  return {
    depth: jsonDepth,
    nodes: jsonNodes,
    members: jsonMembers,
    stringLength: jsonStringLength,
    reader: "exact",
  };
}

/** The same for a body as a whole. */
export function bodyLimits(config: GatewayConfig): BodyLimits {
  return { bytes: config.limits.bodyBytes, json: jsonBounds(config) };
}

/** The limits of the body of a model request. */
export function modelBodyLimits(config: GatewayConfig): BodyLimits {
  const { bodyBytes, modelJsonNodes } = config.limits;
  return { bytes: bodyBytes, json: { ...jsonBounds(config), nodes: modelJsonNodes } };
}

/** The bounds of what upstreams and providers answer. */
export function replyJsonBounds(config: GatewayConfig): JsonBounds {
  const { jsonDepth: depth, jsonStringLength: stringLength, upstreamReplyNodes: nodes } = config.limits;
  return { depth, nodes, stringLength, reader: "tolerant" };
}
