import type { JsonObject } from "../../../kernel/json.ts";
import { textPart } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { stopReason } from "../stop-reason.ts";
import { readUsage, writeUsage } from "../usage.ts";
import { toolUse } from "./tool-use.ts";

/**
 * An answer of the chat API as one of the messages API. What the answer says is translated or refused; what is told
 * beside it of the provider's own (fingerprint, tier, timings) is left behind.
 */
export function toMessagesResponse(body: JsonObject): JsonObject {
  const answer = new Members(body, "", "PROVIDER_INVALID");
  const [choice, second] = answer.items("choices");
  if (choice === undefined) throw answer.expected("choices", "one choice");
  if (second !== undefined) throw untranslatable(second.path);
  const message = choice.members("message");
  if (message === undefined) throw choice.expected("message", "an object");
  const refusal = message.string("refusal");
  const content = contentOf(message);
  const callsTool = content.some(({ type }) => type === "tool_use");
  const finish = choice.requiredString("finish_reason");
  choice.neutral("logprobs");
  return {
    id: answer.requiredString("id"),
    type: "message",
    role: "assistant",
    model: answer.requiredString("model"),
    content,
    stop_reason: stopReason(finish, { callsTool, refuses: refusal !== undefined }, choice.at("finish_reason")),
    stop_sequence: null,
    ...(refusal === undefined ? {} : { stop_details: refusalDetails(refusal) }),
    usage: writeUsage("messages", readUsage("chat", body)),
  };
}

/** The words in which the model refused. */
export function refusalDetails(words: string): JsonObject {
  return { type: "refusal", category: null, explanation: words };
}

function contentOf(message: Members): readonly JsonObject[] {
  message.string("role");
  const thinking = message.string("reasoning_content");
  const text = message.string("content");
  const calls = message.items("tool_calls").map((call) => {
    call.number("index"); // as in a stream: some servers write it here, too
    return toolUse(call);
  });
  message.neutral("annotations");
  message.end();
  return [
    ...(thinking === undefined || thinking === "" ? [] : [{ type: "thinking", thinking, signature: "" }]),
    ...(text === undefined || text === "" ? [] : [textPart(text)]),
    ...calls,
  ];
}
