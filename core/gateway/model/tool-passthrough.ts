import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";

const toolMembers = ["tools", "tool_choice", "mcp_servers"] as const;
const toolBlock = /tool_(?:use|result)$/;

/** Throws TOOLS_DISABLED for a request of the messages API that offers tools, or contains their use. */
export function refuseTools(body: JsonObject): void {
  const member = toolMembers.find((name) => Object.hasOwn(body, name));
  if (member !== undefined) throw disabled(`\`${member}\``);
  const messages = Array.isArray(body.messages) ? (body.messages as readonly Json[]) : [];
  if (messages.some((message) => isJsonObject(message) && usesTools(message))) throw disabled("a tool block");
}

/** Throws TOOLS_DISABLED for a response of the messages API, or a part of one, that uses a tool. */
export function refuseToolUse(body: JsonObject): void {
  if (usesTools(body)) throw new GatewayError("TOOLS_DISABLED", "the model asked for a tool, which is not passed on");
}

/** True for a message with a block of tool use or of its result. */
function usesTools({ content }: JsonObject): boolean {
  if (!Array.isArray(content)) return false;
  return content.some((block: Json) => isJsonObject(block) && toolBlock.test(String(block.type)));
}

function disabled(what: string): GatewayError {
  return new GatewayError(
    "TOOLS_DISABLED",
    `expected no tools, got ${what}; an operator may set \`model_gateway.tool_passthrough: true\``,
  );
}
