import type { JsonObject } from "../../../action/json.ts";
import type { TokenUsage } from "../../../action/model-api.ts";
import { readOnlyChoice } from "../chat-answer.ts";
import { Members, untranslatable } from "../member.ts";
import { toolUse } from "../to-messages/response.ts";
import { readUsage } from "../usage.ts";

const finishReasons: ReadonlyMap<string, string> = new Map([
  ["stop", "STOP"],
  ["tool_calls", "STOP"],
  ["length", "MAX_TOKENS"],
  ["content_filter", "SAFETY"],
]);

/**
 * Translates a chat response to one of the Gemini API, by the rules for the messages API. Thinking is left out unless the
 * client asked for it. Throws PROVIDER_INVALID and MODEL_UNTRANSLATABLE.
 */
export function toGeminiResponse(body: JsonObject, showsThoughts: boolean): JsonObject {
  const answer = new Members(body, "", "PROVIDER_INVALID");
  const { choice, message } = readOnlyChoice(answer);
  const refusal = message.string("refusal");
  const parts = partsOf(message, showsThoughts);
  const finish = finishMembers(choice.requiredString("finish_reason"), refusal);
  choice.neutral("logprobs");
  return {
    candidates: [{ content: { role: "model", parts }, ...finish, index: 0 }],
    ...usageMetadata(readUsage("chat", body)),
    modelVersion: answer.requiredString("model"),
    responseId: answer.requiredString("id"),
  };
}

function partsOf(message: Members, showsThoughts: boolean): readonly JsonObject[] {
  message.string("role");
  const thinking = message.string("reasoning_content") ?? "";
  const text = message.string("content") ?? "";
  const calls = message.items("tool_calls").map((call) => {
    call.number("index"); // some servers include it outside of streams, too
    return callPart(toolUse(call));
  });
  message.neutral("annotations");
  message.end();
  return partsOrEmpty([
    ...(thinking === "" || !showsThoughts ? [] : [thoughtPart(thinking)]),
    ...(text === "" ? [] : [{ text }]),
    ...calls,
  ]);
}

/** Returns parts of which there is at least one: clients read the first unasked. */
export function partsOrEmpty(parts: readonly JsonObject[]): readonly JsonObject[] {
  return parts.length === 0 ? [{ text: "" }] : parts;
}

export function thoughtPart(text: string): JsonObject {
  return { text, thought: true };
}

/** Writes a `tool_use` block of the messages API as a part. */
export function callPart({ id, name, input }: JsonObject): JsonObject {
  return { functionCall: { id, name, args: input } as JsonObject };
}

/** The reason why the answer ended, with the model's explanation of a refusal. Throws MODEL_UNTRANSLATABLE. */
export function finishMembers(finish: string, refusal: string | undefined): JsonObject {
  const reason = finishReasons.get(finish);
  if (reason === undefined) throw untranslatable("choices[0].finish_reason", `\`${finish.slice(0, 64)}\``);
  return refusal === undefined ? { finishReason: reason } : { finishReason: "SAFETY", finishMessage: refusal };
}

/** The token counts as a member of a response; none where nothing was counted. */
export function usageMetadata(usage: TokenUsage | undefined): JsonObject {
  if (usage === undefined) return {};
  const { inputTokens, outputTokens, cachedInputTokens = 0, reasoningTokens = 0 } = usage;
  return {
    usageMetadata: {
      promptTokenCount: inputTokens,
      candidatesTokenCount: Math.max(outputTokens - reasoningTokens, 0),
      totalTokenCount: inputTokens + outputTokens,
      ...(cachedInputTokens === 0 ? {} : { cachedContentTokenCount: cachedInputTokens }),
      ...(reasoningTokens === 0 ? {} : { thoughtsTokenCount: reasoningTokens }),
    },
  };
}
