import type { Capability } from "../../action/capability.ts";
import { ticketMetaKey } from "../../action/capability-ticket.ts";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { type McpEra, metaKey, typeName } from "../../action/json-rpc.ts";
import { readTraceContext, type TraceContext, traceparentOf } from "../../action/trace.ts";
import { relayedCapabilities } from "./client-capability.ts";

/** The target of a request: the owner of a tool, prompt, resource or reference, every upstream, or the gateway itself. */
type Routing = "tool" | "prompt" | "resource" | "reference" | "every" | "list" | "listen";

export interface McpMethod {
  readonly routing: Routing;
  /** Null: the tool decides. */
  readonly capability: Capability | null;
  readonly eras: readonly McpEra[];
  /** The server capability that an upstream needs to serve this method. */
  readonly needs: "tools" | "prompts" | "resources" | "completions" | "logging" | null;
  /** The members of `params` that are evaluated and forwarded; others are dropped. */
  readonly params: Readonly<Record<string, ParamRule>>;
}

type ParamRule = "string" | "object" | "optional string" | "optional object";

const both: readonly McpEra[] = ["legacy", "modern"];
const legacy: readonly McpEra[] = ["legacy"];
const modern: readonly McpEra[] = ["modern"];
const named = { name: "string", arguments: "optional object" } as const;
const located = { uri: "string" } as const;

/**
 * The MCP methods that a client may send beyond the handshake, with their rules. Any other method is unknown: nothing is
 * forwarded without evaluation.
 */
export const mcpMethods: Readonly<Record<string, McpMethod>> = {
  "tools/list": { routing: "list", capability: "read", eras: both, needs: "tools", params: {} },
  "tools/call": { routing: "tool", capability: null, eras: both, needs: "tools", params: named },
  "prompts/list": { routing: "list", capability: "read", eras: both, needs: "prompts", params: {} },
  "prompts/get": { routing: "prompt", capability: "read", eras: both, needs: "prompts", params: named },
  "resources/list": { routing: "list", capability: "read", eras: both, needs: "resources", params: {} },
  "resources/templates/list": { routing: "list", capability: "read", eras: both, needs: "resources", params: {} },
  "resources/read": { routing: "resource", capability: "read", eras: both, needs: "resources", params: located },
  "resources/subscribe": { routing: "resource", capability: "read", eras: legacy, needs: "resources", params: located },
  "resources/unsubscribe": {
    routing: "resource",
    capability: "read",
    eras: legacy,
    needs: "resources",
    params: located,
  },
  "completion/complete": {
    routing: "reference",
    capability: "read",
    eras: both,
    needs: "completions",
    params: { ref: "object", argument: "object", context: "optional object" },
  },
  "logging/setLevel": {
    routing: "every",
    capability: "read",
    eras: legacy,
    needs: "logging",
    params: { level: "string" },
  },
  "subscriptions/listen": {
    routing: "listen",
    capability: "read",
    eras: modern,
    needs: null,
    params: { notifications: "object" },
  },
};

/** Returns the members of `params` that this method keeps. Throws INVALID_PARAMS for one of a wrong type. */
export function pickParams(row: McpMethod, params: JsonObject | undefined): JsonObject {
  const picked: Record<string, JsonObject | string> = {};
  for (const [name, rule] of Object.entries(row.params)) {
    const value = params !== undefined && Object.hasOwn(params, name) ? params[name] : undefined;
    if (value === undefined && rule.startsWith("optional")) continue;
    const wanted = rule.endsWith("object") ? "object" : "string";
    if (wanted === "object" ? !isJsonObject(value) : typeof value !== "string") {
      throw new GatewayError(
        "INVALID_PARAMS",
        `expected \`${name}\` to be ${wanted === "object" ? "an object" : "a string"}, got ${typeName(value)}`,
      );
    }
    picked[name] = value as JsonObject | string;
  }
  return picked;
}

/** `_meta` keys that no setting forwards with the action: they control the protocol. A ticket is for the gateway only. */
const unpassable: readonly string[] = [
  "progressToken",
  "traceparent",
  "tracestate",
  metaKey.logLevel,
  metaKey.clientCapabilities,
  ticketMetaKey,
];
const maxProgressToken = 512;
const logLevels: readonly Json[] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/** The prefix of the gateway's own input requests; responses to them are not forwarded. */
export const ownQuestion = "io.agent-governance-gateway/review/";

/**
 * The part of a request's `_meta` that steers how it is answered: closed values, written anew, as nobody judges them. `trace`,
 * where given, replaces the client's own. The token of progress is the client's: on the wire a connection has its own.
 */
export function steeringMeta(meta: JsonObject, trace?: TraceContext): JsonObject {
  const kept: Record<string, Json> = {};
  const {
    progressToken: token,
    traceparent,
    [metaKey.logLevel]: level,
    [metaKey.clientCapabilities]: capabilities,
  } = meta;
  const isToken = typeof token === "string" ? token.length <= maxProgressToken : Number.isInteger(token);
  if (token !== undefined && isToken) kept.progressToken = token;
  const context = trace ?? readTraceContext(traceparent);
  if (context !== undefined) kept.traceparent = traceparentOf(context);
  if (level !== undefined && logLevels.includes(level)) kept[metaKey.logLevel] = level;
  if (isJsonObject(capabilities)) kept[metaKey.clientCapabilities] = relayedCapabilities(capabilities);
  return kept;
}

/**
 * The members that a request carries to the upstream beyond its arguments: responses to an interrupted request (stateless
 * revision only), and forwarded `_meta` keys. All of them are evaluated. Undefined where there are none.
 */
export function continuationOf(
  era: McpEra,
  params: JsonObject = {},
  passthrough: readonly string[] = [],
): JsonObject | undefined {
  const carried: Record<string, Json> = {};
  if (era === "modern") {
    const responses = withoutOwn(params.inputResponses);
    if (responses !== undefined) carried.inputResponses = responses;
    if (params.requestState !== undefined) carried.requestState = params.requestState;
  }
  const meta = isJsonObject(params._meta) ? params._meta : {};
  const keys = passthrough.filter((key) => !unpassable.includes(key) && Object.hasOwn(meta, key));
  if (keys.length > 0) carried._meta = Object.fromEntries(keys.map((key) => [key, meta[key] as Json]));
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
