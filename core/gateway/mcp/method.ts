import type { Capability } from "../../action/capability.ts";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type JsonObject } from "../../action/json.ts";
import { type McpEra, typeName } from "../../action/json-rpc.ts";

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

/** The row of a method in an era. Throws METHOD_UNKNOWN. */
export function findMethod(method: string, era: McpEra): McpMethod {
  const row = Object.hasOwn(mcpMethods, method) ? mcpMethods[method] : undefined;
  if (row?.eras.includes(era)) return row;
  throw new GatewayError("METHOD_UNKNOWN", `\`${method}\``);
}

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
