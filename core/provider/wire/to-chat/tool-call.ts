import type { JsonObject } from "../../../kernel/json.ts";
import { type Members, untranslatable } from "../member.ts";

/** A `tool_use` block, of a request or of an answer, as an entry of `tool_calls`. */
export function toolCall(block: Members): JsonObject {
  const id = block.requiredString("id");
  const name = block.requiredString("name");
  const input = block.object("input");
  if (input === undefined) throw block.expected("input", "an object");
  directCaller(block);
  block.end();
  return { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
}

/** Takes the `caller` of a tool call: the model itself, which goes without saying, or code that ran at the provider. */
export function directCaller(call: Members): void {
  const caller = call.members("caller");
  if (caller !== undefined && caller.string("type") !== "direct") throw untranslatable(call.at("caller"));
}
