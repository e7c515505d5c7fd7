import type { JsonObject } from "../../kernel/json.ts";
import { indexAt, isText, objectAt, objectsAt, type TextSite } from "./stream-shape.ts";

/** Choices of one answer, and calls of tools in one choice. */
const mostParts = 128;

/** One choice of a chunk. */
export interface ChoiceDelta {
  readonly index: number;
  readonly choice: JsonObject;
  readonly delta: JsonObject;
  readonly calls: readonly CallDelta[];
}

export interface CallDelta {
  readonly index: number;
  readonly call: JsonObject;
  readonly named: JsonObject;
}

/** The choices of a chunk of the chat API; PROVIDER_INVALID where they cannot be told apart. */
export function choicesOf(chunk: JsonObject): readonly ChoiceDelta[] {
  return objectsAt(chunk.choices, "choices").map((choice) => {
    const delta = objectAt(choice.delta, "choices[].delta");
    return {
      index: indexAt(choice.index, "choices[].index", mostParts),
      choice,
      delta,
      calls: objectsAt(delta.tool_calls, "choices[].delta.tool_calls").map((call) => ({
        index: indexAt(call.index, "choices[].delta.tool_calls[].index", mostParts),
        call,
        named: objectAt(call.function, "choices[].delta.tool_calls[].function"),
      })),
    };
  });
}

/** The members of a delta that are text of the message, in the order in which they are read. */
export const messageTexts = ["reasoning_content", "content", "refusal"] as const;

export interface ChatTextSite extends TextSite {
  readonly choice: number;
  /** The call whose arguments they are; -1: of the function that former versions of the API call. */
  readonly call?: number;
}

/** Where the texts of a chunk are. */
export function chatTextSites(choices: readonly ChoiceDelta[]): readonly ChatTextSite[] {
  return choices
    .flatMap(({ index: choice, delta, calls }): readonly ChatTextSite[] => [
      ...messageTexts.map((key) => ({ holder: delta, key, choice })),
      ...calls.map(({ index, named }) => ({ holder: named, key: "arguments", choice, call: index })),
      { holder: objectAt(delta.function_call, "choices[].delta.function_call"), key: "arguments", choice, call: -1 },
    ])
    .filter(({ holder, key }) => isText(holder[key]));
}
