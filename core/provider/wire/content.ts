import type { Json, JsonObject } from "../../action/json.ts";
import { type Members, untranslatable } from "./member.ts";

/** Reads a member that both APIs write as a text or as a list of parts. */
export function partsOf(owner: Members, name: string): readonly Members[] | string | undefined {
  const value = owner.take(name);
  if (value === undefined || typeof value === "string") return value;
  if (!Array.isArray(value)) throw owner.expected(name, "a string or a list");
  return owner.items(name);
}

/** Reads a member that may hold only texts; both APIs name a part of text alike. */
export function textsOf(owner: Members, name: string): readonly string[] {
  const parts = partsOf(owner, name);
  if (parts === undefined) return [];
  return typeof parts === "string" ? [parts] : parts.map(textOf);
}

function textOf(part: Members): string {
  if (part.requiredString("type") !== "text") throw untranslatable(part.at("type"), "expected `text`");
  const text = part.requiredString("text");
  part.end();
  return text;
}

/** Writes texts as either API does: one alone, or a list of parts. */
export function textContent(texts: readonly string[]): Json {
  return texts.length === 1 ? (texts[0] as string) : texts.map(textPart);
}

export function textPart(text: string): JsonObject {
  return { type: "text", text };
}

/** The members of a translated response that the provider's own has no values for. */
export interface ResponseOptions {
  /** The time of the response, in seconds since 1970, which the chat and the responses API include. */
  readonly created?: number;
  /** True if the client of a chat stream requested `stream_options.include_usage`. */
  readonly includeUsage?: boolean;
  /** The request as it was judged, in the client's API: responses of the responses API repeat parts of it. */
  readonly request?: JsonObject;
}

const toChat: ReadonlyMap<string, string> = new Map([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "tool_calls"],
  ["refusal", "content_filter"],
]);

const toMessages: ReadonlyMap<string, string> = new Map([
  ["stop", "end_turn"],
  ["length", "max_tokens"],
  ["tool_calls", "tool_use"],
  ["content_filter", "refusal"],
]);

/** Translates a stop reason to the chat API's finish reason. Throws MODEL_UNTRANSLATABLE. */
export function finishReason(stopReason: string, path: string): string {
  const reason = toChat.get(stopReason);
  if (reason === undefined) throw untranslatable(path, `\`${stopReason.slice(0, 64)}\``);
  return reason;
}

/**
 * Translates a finish reason to the messages API's stop reason. The chat API also uses `stop` for a response that calls
 * the one required tool, and for a refusal with an explanation. Throws MODEL_UNTRANSLATABLE.
 */
export function stopReason(
  finish: string,
  answer: { readonly callsTool: boolean; readonly refuses: boolean },
  path: string,
): string {
  const reason = toMessages.get(finish);
  if (reason === undefined) throw untranslatable(path, `\`${finish.slice(0, 64)}\``);
  if (reason !== "end_turn") return reason;
  if (answer.refuses) return "refusal";
  return answer.callsTool ? "tool_use" : reason;
}
