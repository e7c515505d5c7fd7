import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { modelTool } from "../../action/model-api.ts";

/** A tool call that an answer asks its client for. */
export interface ToolCall {
  /** Null where the call names none. */
  readonly tool: string | null;
  /** An object, or JSON as the model wrote it. The text of a custom tool is the member `input` of an object. */
  readonly arguments: Json;
}

const readers: ReadonlyMap<string, (answer: JsonObject) => readonly ToolCall[]> = new Map([
  [modelTool("chat", "answer"), callsOfChat],
  [modelTool("messages", "answer"), callsOfMessages],
  [modelTool("responses", "answer"), callsOfResponses],
]);

/**
 * Returns the tool calls of a whole answer to a model action of this `tool`, in their order, without those that the provider
 * runs itself. Never throws: what has no form of a call is none, and a call that cannot be read has null for what is missing.
 */
export function toolCallsOf(tool: string, answer: Json | undefined): readonly ToolCall[] {
  return isJsonObject(answer) ? (readers.get(tool)?.(answer) ?? []) : [];
}

function objectsIn(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function objectIn(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function callOf(name: Json | undefined, args: Json | undefined): ToolCall {
  return { tool: typeof name === "string" && name !== "" ? name : null, arguments: args ?? null };
}

function callsOfChat({ choices }: JsonObject): readonly ToolCall[] {
  return objectsIn(choices).flatMap((choice) => {
    const message = objectIn(choice.message);
    const former = message.function_call;
    return [
      ...objectsIn(message.tool_calls).map(chatCall),
      ...(isJsonObject(former) ? [callOf(former.name, former.arguments)] : []),
    ];
  });
}

function chatCall(call: JsonObject): ToolCall {
  if (isJsonObject(call.custom)) return callOf(call.custom.name, { input: call.custom.input ?? null });
  const named = objectIn(call.function);
  return callOf(named.name, named.arguments);
}

function callsOfMessages({ content }: JsonObject): readonly ToolCall[] {
  return objectsIn(content)
    .filter(({ type }) => type === "tool_use")
    .map(({ name, input }) => callOf(name, isJsonObject(input) ? input : null));
}

/** Items that ask for a tool which the API defines, by the name of the tool, with the member that says what to do. */
const definedTools: ReadonlyMap<Json | undefined, readonly [tool: string, member: string]> = new Map([
  ["local_shell_call", ["local_shell", "action"]],
  ["shell_call", ["shell", "action"]],
  ["apply_patch_call", ["apply_patch", "operation"]],
  ["computer_call", ["computer", "action"]],
]);

function callsOfResponses({ output }: JsonObject): readonly ToolCall[] {
  return objectsIn(output).flatMap((item) => {
    const { type, name } = item;
    if (type === "function_call") return [callOf(name, item.arguments)];
    if (type === "custom_tool_call") return [callOf(name, { input: item.input ?? null })];
    const defined = definedTools.get(type);
    return defined === undefined ? [] : [callOf(defined[0], item[defined[1]])];
  });
}
