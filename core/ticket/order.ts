import type { Capability } from "../kernel/capability.ts";
import { capabilities } from "../kernel/capability.ts";
import { GatewayError } from "../kernel/error.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";
import { isCapability, isPatterns, mostUses, scopeBounds, type TicketScope } from "./claims.ts";

/** What an operator asks for. */
export interface TicketOrder extends TicketScope {
  readonly principal: string;
  readonly maxUses: number;
  readonly ttlSeconds: number;
}

/** Seconds that a ticket lasts unless told, and at most. */
export interface TicketTimes {
  readonly defaultTtlSeconds: number;
  readonly maxTtlSeconds: number;
}

const members = ["principal", "tools", "targets", "capabilities", "max_uses", "ttl_seconds"];
const patterns = `a list of 1 to ${scopeBounds.items} names or globs of at most ${scopeBounds.characters} characters`;

/** Reads an order. Throws INVALID_PARAMS; nothing is guessed but how long it lasts, and that it is for one use. */
export function readOrder(body: Json, times: TicketTimes): TicketOrder {
  if (!isJsonObject(body)) throw invalid("the body to be an object");
  const unknown = Object.keys(body).find((name) => !members.includes(name));
  if (unknown !== undefined) {
    const got = `\`${unknown.slice(0, 64).toWellFormed()}\``;
    throw invalid(`only ${members.map((name) => `\`${name}\``).join(", ")}, got ${got}`);
  }
  const { principal, max_uses: uses = 1, ttl_seconds: ttl = times.defaultTtlSeconds } = body;
  if (typeof principal !== "string") throw invalid("`principal` to be the id of a principal of your tenant");
  return {
    principal,
    tools: readPatterns("tools", body.tools),
    targets: readPatterns("targets", body.targets),
    capabilities: readCapabilities(body.capabilities),
    maxUses: readCount("max_uses", uses, mostUses),
    ttlSeconds: readCount("ttl_seconds", ttl, times.maxTtlSeconds),
  };
}

function readPatterns(name: string, value: Json | undefined): readonly string[] {
  if (value === undefined || !isPatterns(value)) throw invalid(`\`${name}\` to be ${patterns}`);
  return value as readonly string[];
}

function readCapabilities(value: Json | undefined): readonly Capability[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= scopeBounds.items && value.every(isCapability)) {
    return value as readonly Capability[];
  }
  throw invalid(`\`capabilities\` to be a list of ${capabilities.join(", ")}`);
}

function readCount(name: string, value: Json, most: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= most) return value as number;
  throw invalid(`\`${name}\` to be a whole number from 1 to ${most}`);
}

function invalid(expected: string): GatewayError {
  return new GatewayError("INVALID_PARAMS", `expected ${expected}`);
}
