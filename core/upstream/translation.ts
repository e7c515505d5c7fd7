import { GatewayError } from "../kernel/error.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { JsonRpcResponse } from "../kernel/json-rpc.ts";
import type { McpEra } from "../kernel/mcp.ts";

const cacheable: ReadonlySet<string> = new Set([
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "server/discover",
]);

/**
 * A result in the words of the other era: the stateless revision says of each result what type it is, and of some how
 * long they may be kept; the older ones know neither. A result that asks for input has no older form:
 * CLIENT_CAPABILITY_MISSING.
 */
export function adaptResult(result: JsonObject, from: McpEra, to: McpEra, method: string): JsonObject {
  if (from === to) return result;
  if (to === "modern") {
    const cache = cacheable.has(method) ? { ttlMs: 0, cacheScope: "private" } : {};
    return { ...cache, ...result, resultType: "complete" };
  }
  const { resultType, ...rest } = result;
  if (resultType === "input_required") {
    throw new GatewayError(
      "CLIENT_CAPABILITY_MISSING",
      "the upstream asks for input, which needs a client of protocol revision 2026-07-28",
    );
  }
  if (!cacheable.has(method)) return rest;
  const { ttlMs: _ttl, cacheScope: _scope, ...legacy } = rest;
  return legacy;
}

/** A response in the words of the other era; errors are the same in both. */
export function adaptResponse(response: JsonRpcResponse, from: McpEra, to: McpEra, method: string): JsonRpcResponse {
  if (from === to || !("result" in response)) return response;
  return { ...response, result: adaptResult(response.result, from, to, method) };
}
