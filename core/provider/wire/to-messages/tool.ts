import type { JsonObject } from "../../../kernel/json.ts";
import { type Members, untranslatable } from "../member.ts";

/** A function that a chat request offers, as a tool of the messages API. */
export function toolDefinition(tool: Members): JsonObject {
  const definition = functionOf(tool);
  const description = definition.string("description");
  const strict = definition.boolean("strict");
  const translated = {
    name: definition.requiredString("name"),
    ...(description === undefined ? {} : { description }),
    input_schema: definition.object("parameters") ?? { type: "object", properties: {} },
    ...(strict === undefined ? {} : { strict }),
  };
  definition.end();
  return translated;
}

/** The `function` of a tool or of a choice: the only type of either that both APIs know. */
function functionOf(owner: Members): Members {
  if (owner.requiredString("type") !== "function") throw untranslatable(owner.at("type"), "expected `function`");
  const named = owner.members("function");
  if (named === undefined) throw owner.expected("function", "an object");
  owner.end();
  return named;
}

const modes: ReadonlyMap<string, string> = new Map([
  ["auto", "auto"],
  ["required", "any"],
  ["none", "none"],
]);

/** Which tool is to be called, and whether more than one may be at once; undefined where the request leaves both open. */
export function toolChoice(request: Members, parallel: boolean, offered: boolean): JsonObject | undefined {
  const choice = choiceOf(request);
  if (parallel) return choice;
  if (!offered) throw untranslatable("parallel_tool_calls", "expected `tools`");
  if (choice?.type === "none") return choice;
  return { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true };
}

function choiceOf(request: Members): JsonObject | undefined {
  const choice = request.take("tool_choice");
  if (choice === undefined) return undefined;
  if (typeof choice === "string") {
    const type = modes.get(choice);
    if (type === undefined) throw untranslatable("tool_choice");
    return { type };
  }
  const named = request.members("tool_choice");
  if (named === undefined) return undefined;
  const definition = functionOf(named);
  const name = definition.requiredString("name");
  definition.end();
  return { type: "tool", name };
}
