import { untranslatable } from "./member.ts";

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
