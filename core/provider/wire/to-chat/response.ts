import type { JsonObject } from "../../../action/json.ts";
import { finishReason, type ResponseOptions } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { readUsage, writeUsage } from "../usage.ts";

/**
 * Translates a response of the messages API to one of the chat API. Its content is translated or refused; the provider's
 * own members beside it (tier, container, signatures, thinking that only the provider can read) are dropped.
 */
export function toChatResponse(body: JsonObject, options: ResponseOptions): JsonObject {
  const answer = new Members(body, "", "PROVIDER_INVALID");
  const usage = readUsage("messages", body);
  return {
    id: answer.requiredString("id"),
    object: "chat.completion",
    created: options.created ?? 0,
    model: answer.requiredString("model"),
    choices: [
      {
        index: 0,
        message: messageOf(answer),
        logprobs: null,
        finish_reason: finishReason(answer.requiredString("stop_reason"), "stop_reason"),
      },
    ],
    ...(usage === undefined ? {} : { usage: writeUsage("chat", usage) }),
  };
}

function messageOf(answer: Members): JsonObject {
  const texts: string[] = [];
  const thoughts: string[] = [];
  const calls: JsonObject[] = [];
  for (const block of answer.items("content")) {
    const type = block.requiredString("type");
    if (type === "text") texts.push(textOf(block));
    else if (type === "thinking") thoughts.push(thoughtOf(block));
    else if (type === "tool_use") calls.push(toolCall(block));
    else if (type !== "redacted_thinking") throw untranslatable(block.at("type"), `\`${type.slice(0, 64)}\``);
  }
  return {
    role: "assistant",
    content: texts.length === 0 ? null : texts.join(""),
    refusal: refusalExplanation(answer.members("stop_details")) ?? null,
    ...(thoughts.length === 0 ? {} : { reasoning_content: thoughts.join("") }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

function textOf(block: Members): string {
  const text = block.requiredString("text");
  block.neutral("citations");
  block.end();
  return text;
}

function thoughtOf(block: Members): string {
  const thinking = block.requiredString("thinking");
  block.string("signature");
  block.end();
  return thinking;
}

/** The model's explanation of a refusal, if any. */
export function refusalExplanation(details: Members | undefined): string | undefined {
  if (details === undefined) return undefined;
  details.string("type");
  details.string("category");
  const words = details.string("explanation");
  details.end();
  return words;
}

/** Translates a `tool_use` block, of a request or a response, to an entry of `tool_calls`. */
export function toolCall(block: Members): JsonObject {
  const id = block.requiredString("id");
  const name = block.requiredString("name");
  const input = block.object("input");
  if (input === undefined) throw block.expected("input", "an object");
  directCaller(block);
  block.end();
  return { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
}

/** Reads the `caller` of a tool call. Throws MODEL_UNTRANSLATABLE for a call by code that ran at the provider. */
export function directCaller(call: Members): void {
  const caller = call.members("caller");
  if (caller !== undefined && caller.string("type") !== "direct") throw untranslatable(call.at("caller"));
}
