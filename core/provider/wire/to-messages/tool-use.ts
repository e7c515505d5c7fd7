import type { JsonObject } from "../../../kernel/json.ts";
import { type Members, untranslatable } from "../member.ts";
import { parseArguments } from "../tool-input.ts";

/** An entry of `tool_calls`, of a request or of an answer, as a `tool_use` block. */
export function toolUse(call: Members): JsonObject {
  const id = call.requiredString("id");
  if ((call.string("type") ?? "function") !== "function") throw untranslatable(call.at("type"), "expected `function`");
  const named = call.members("function");
  if (named === undefined) throw call.expected("function", "an object");
  call.end();
  const name = named.requiredString("name");
  const input = parseArguments(named);
  named.end();
  return { type: "tool_use", id, name, input };
}
