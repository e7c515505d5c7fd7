import type { JsonObject } from "../../kernel/json.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { latestLegacyRevision, legacyRevisions, metaKey, modernRevision } from "../../kernel/mcp.ts";
import type { ServerDescription } from "../../upstream/connection.ts";

/** How the gateway presents itself to MCP clients. */
export interface GatewayIdentity {
  readonly name: string;
  readonly version: string;
}

/** The capabilities the gateway relays; an upstream's other ones are not offered to clients. */
const relayed = ["tools", "prompts", "resources", "completions", "logging"] as const;

/** What the upstreams can do together: a capability is there when one of them has it, a flag when one sets it. */
export function mergeCapabilities(servers: readonly ServerDescription[]): JsonObject {
  const merged: Record<string, JsonObject> = {};
  for (const { capabilities } of servers) {
    for (const name of relayed) {
      const capability = capabilities[name];
      if (isJsonObject(capability)) merged[name] = orFlags(merged[name] ?? {}, capability);
    }
  }
  return merged;
}

function orFlags(left: JsonObject, right: JsonObject): JsonObject {
  const flags: Record<string, boolean> = {};
  for (const name of ["listChanged", "subscribe"]) {
    if (left[name] === true || right[name] === true) flags[name] = true;
  }
  return flags;
}

/** The answer to `initialize`: the requested revision where we speak it, else our latest with a handshake. */
export function initializeResult(
  identity: GatewayIdentity,
  servers: readonly ServerDescription[],
  requested: unknown,
): JsonObject {
  const protocolVersion = legacyRevisions.find((revision) => revision === requested) ?? latestLegacyRevision;
  return {
    protocolVersion,
    capabilities: mergeCapabilities(servers),
    serverInfo: { ...identity },
    ...instructionsOf(servers),
  };
}

/** The answer to `server/discover`. */
export function discoverResult(identity: GatewayIdentity, servers: readonly ServerDescription[]): JsonObject {
  return {
    resultType: "complete",
    supportedVersions: [modernRevision],
    capabilities: mergeCapabilities(servers),
    ...instructionsOf(servers),
    ttlMs: 0,
    cacheScope: "private",
    _meta: { [metaKey.serverInfo]: { ...identity } },
  };
}

function instructionsOf(servers: readonly ServerDescription[]): { instructions?: string } {
  const texts = servers.flatMap(({ instructions }) => (instructions === undefined ? [] : [instructions]));
  return texts.length === 0 ? {} : { instructions: texts.join("\n\n") };
}
