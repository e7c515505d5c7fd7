import type { JsonObject } from "../../../kernel/json.ts";
import { type Members, untranslatable } from "../member.ts";

/** A tool that a messages request offers, as a function of the chat API. Those that a provider runs itself have none. */
export function toolDefinition(tool: Members): JsonObject {
  tool.neutral("type", "custom");
  const description = tool.string("description");
  const parameters = tool.object("input_schema");
  if (parameters === undefined) throw tool.expected("input_schema", "an object");
  const strict = tool.boolean("strict");
  const definition = {
    name: tool.requiredString("name"),
    ...(description === undefined ? {} : { description }),
    parameters,
    ...(strict === undefined ? {} : { strict }),
  };
  tool.end();
  return { type: "function", function: definition };
}

const modes: ReadonlyMap<string, string> = new Map([
  ["auto", "auto"],
  ["any", "required"],
  ["none", "none"],
]);

/** Which tool is to be called, and whether more than one may be at once: two members of a chat request. */
export function toolChoice(choice: Members | undefined): JsonObject {
  if (choice === undefined) return {};
  const type = choice.requiredString("type");
  const serial = choice.boolean("disable_parallel_tool_use") === true;
  const named = type === "tool" ? { type: "function", function: { name: choice.requiredString("name") } } : undefined;
  const translated = named ?? modes.get(type);
  if (translated === undefined) throw untranslatable(choice.at("type"), `\`${type.slice(0, 64)}\``);
  choice.end();
  return { tool_choice: translated, ...(serial ? { parallel_tool_calls: false } : {}) };
}
