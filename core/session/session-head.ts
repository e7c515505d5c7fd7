import { GatewayError } from "../action/error.ts";
import { isJsonObject, parseKept } from "../action/json.ts";
import type { Taint } from "../action/session-state.ts";
import { lastPart, tenantPrefix } from "../store/key-range.ts";
import type { CountedRisk } from "./risk-meter.ts";

/** The stored state of a session: all of it but the history. */
export interface SessionHead {
  readonly principal: string;
  readonly risk: CountedRisk;
  readonly actions: number;
  readonly reviews: number;
  /** Milliseconds since 1970. */
  readonly last: number;
  readonly taints: readonly Taint[];
  /** Digests of the tools used last. */
  readonly tools: readonly string[];
  readonly tool_count: number;
}

/** The key prefix of the heads of a tenant. */
export function headPrefix(tenant: string): string {
  return `${tenantPrefix(tenant)}session-head/`;
}

export function headKey(tenant: string, session: string): string {
  return `${headPrefix(tenant)}${encodeURIComponent(session)}`;
}

/** Returns the session id of a key. */
export function sessionOfHead(key: string): string {
  return decodeURIComponent(lastPart(key));
}

/**
 * Parses a head. Throws SESSION_DAMAGED for a damaged one: a session whose risk and taints are unknown may not act as if it
 * were new.
 */
export function readHead(session: string, text: string): SessionHead {
  const head = parseKept(text);
  if (isHead(head)) return head;
  throw new GatewayError("SESSION_DAMAGED", `session \`${session}\`; an operator can reset it`);
}

function isHead(value: unknown): value is SessionHead {
  if (!isJsonObject(value)) return false;
  const { principal, risk, actions, reviews, last, taints, tools, tool_count: count } = value;
  return (
    typeof principal === "string" &&
    Array.isArray(risk) &&
    risk.length === 2 &&
    [...risk, actions, reviews, last, count].every(isAmount) &&
    Array.isArray(taints) &&
    taints.every(isTaint) &&
    Array.isArray(tools) &&
    tools.every((tool) => typeof tool === "string")
  );
}

function isTaint(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const { name, target, tool, action, at } = value;
  return [name, target, tool, action].every((text) => typeof text === "string") && isAmount(at);
}

function isAmount(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
