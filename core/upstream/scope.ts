import type { JsonObject } from "../kernel/json.ts";
import type { McpEra } from "../kernel/mcp.ts";
import type { ConnectionListener } from "./connection.ts";

/** For whom a group of connections is opened. */
export interface GroupScope {
  /** What the client speaks; answers come in its words, whatever the upstream speaks. */
  readonly era: McpEra;
  readonly clientInfo: JsonObject;
  readonly capabilities: JsonObject;
  readonly listener: ConnectionListener;
}
