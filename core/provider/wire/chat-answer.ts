import { type Members, untranslatable } from "./member.ts";
import { indexAt } from "./stream-step.ts";

/** Maximum tool calls of one answer. */
const maxCalls = 128;

/** The one choice of a whole answer. */
interface OnlyChoice {
  readonly choice: Members;
  readonly message: Members;
}

/** Reads the choice of a whole answer of the chat API. Throws PROVIDER_INVALID for none, MODEL_UNTRANSLATABLE for several. */
export function readOnlyChoice(answer: Members): OnlyChoice {
  const [choice, second] = answer.items("choices");
  if (choice === undefined) throw answer.expected("choices", "one choice");
  if (second !== undefined) throw untranslatable(second.path);
  const message = choice.members("message");
  if (message === undefined) throw choice.expected("message", "an object");
  return { choice, message };
}

/** Reads the finish reason of a choice in a chunk. Throws MODEL_UNTRANSLATABLE for another choice than the first. */
export function readFinish(choice: Members): string | undefined {
  if (choice.number("index") !== 0) throw untranslatable(choice.at("index"), "expected 0");
  choice.neutral("logprobs");
  return choice.string("finish_reason");
}

/** The texts that a delta adds, and its entries of `tool_calls`. */
interface MessageDelta {
  readonly thinking: string;
  readonly text: string;
  readonly refusal: string | undefined;
  readonly calls: readonly Members[];
}

/** Reads the delta of a choice; nothing is in one that is absent. Throws for a member that is not known. */
export function readDelta(delta: Members | undefined): MessageDelta {
  if (delta === undefined) return { thinking: "", text: "", refusal: undefined, calls: [] };
  delta.string("role");
  const thinking = delta.string("reasoning_content") ?? "";
  const text = delta.string("content") ?? "";
  const refusal = delta.string("refusal");
  const calls = delta.items("tool_calls");
  delta.neutral("annotations");
  delta.end();
  return { thinking, text, refusal, calls };
}

/** The part of a call that an entry of a delta's `tool_calls` adds, or begins it with. */
interface ToolCallDelta {
  readonly index: number;
  /** Text of the arguments. */
  readonly text: string;
  /** Given where the call is not in `known`. */
  readonly begun: { readonly id: string; readonly name: string } | undefined;
}

/**
 * Reads one entry of a delta's `tool_calls`: the first of an index names the tool, all of them extend its arguments. An entry
 * without an index has that of its `place` in the delta: then each call comes whole, in one delta.
 */
export function readToolCall(entry: Members, place: number, known: ReadonlyMap<number, unknown>): ToolCallDelta {
  const given = entry.take("index") ?? null;
  const index = indexAt(given ?? place, entry.at("index"), maxCalls);
  const id = entry.string("id");
  if ((entry.string("type") ?? "function") !== "function") throw untranslatable(entry.at("type"));
  const named = entry.members("function");
  entry.end();
  const name = named?.string("name");
  const text = named?.string("arguments") ?? "";
  named?.end();
  if (known.has(index)) {
    if (given === null && id !== undefined) {
      throw entry.expected("index", "given where calls come in more than one chunk");
    }
    return { index, text, begun: undefined };
  }
  if (id === undefined || name === undefined) throw entry.expected("function", "the name and the id of a new call");
  return { index, text, begun: { id, name } };
}
