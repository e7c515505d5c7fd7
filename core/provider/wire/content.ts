import type { Json, JsonObject } from "../../action/json.ts";
import { type Members, untranslatable } from "./member.ts";

/** A member that both APIs write as a text, or as a list of parts; a text is one part of text. */
export function partsOf(owner: Members, name: string): readonly Members[] | string | undefined {
  const value = owner.take(name);
  if (value === undefined || typeof value === "string") return value;
  if (!Array.isArray(value)) throw owner.expected(name, "a string or a list");
  return owner.items(name);
}

/** The texts of a member that may hold nothing else; both APIs name a part of text alike. */
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

/** Texts as either API writes them: one alone, or a list of parts. */
export function textContent(texts: readonly string[]): Json {
  return texts.length === 1 ? (texts[0] as string) : texts.map(textPart);
}

export function textPart(text: string): JsonObject {
  return { type: "text", text };
}

/** What the other API's answer says that the provider's does not. */
export interface AnswerOptions {
  /** When the answer was made, in seconds since 1970: the chat API dates its answers. */
  readonly created?: number;
  /** Whether the client of a chat stream asked for `stream_options.include_usage`. */
  readonly includeUsage?: boolean;
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

/** Why the answer ended, as the chat API says it. */
export function finishReason(stopReason: string, path: string): string {
  const reason = toChat.get(stopReason);
  if (reason === undefined) throw untranslatable(path, `\`${stopReason.slice(0, 64)}\``);
  return reason;
}

/**
 * Why the answer ended, as the messages API says it. The chat API says `stop` of an answer that calls the one tool it
 * had to call, and of one that refuses in words of its own.
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
