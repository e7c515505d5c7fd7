/** The stateless revision: no handshake, no session; each request carries its envelope in `_meta`. */
export const modernRevision = "2026-07-28";

/** Revisions with an `initialize` handshake, oldest first. */
export const legacyRevisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] as const;
export const latestLegacyRevision = "2025-11-25";

export const supportedRevisions: readonly string[] = [...legacyRevisions, modernRevision];

/** Which of the two protocols a peer speaks. */
export type McpEra = "legacy" | "modern";

/** Reserved `_meta` keys of the stateless revision. */
export const metaKey = {
  protocolVersion: "io.modelcontextprotocol/protocolVersion",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  logLevel: "io.modelcontextprotocol/logLevel",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  subscriptionId: "io.modelcontextprotocol/subscriptionId",
} as const;

/** The body member that `Mcp-Name` must repeat, by method. */
export const mcpNameSource: Readonly<Record<string, "name" | "uri">> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};

/** A tool name the gateway shows and calls: what the protocol recommends, so that names cannot imitate methods. */
export const toolNamePattern: RegExp = /^[A-Za-z0-9_.-]{1,128}$/;
