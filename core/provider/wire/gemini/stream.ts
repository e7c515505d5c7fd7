import { GatewayError } from "../../../action/error.ts";
import { isGiven, type JsonObject } from "../../../action/json.ts";
import type { TokenUsage } from "../../../action/model-api.ts";
import { doneData, eventObject, type WireEvent } from "../event-reader.ts";
import { Members, untranslatable } from "../member.ts";
import { indexAt } from "../stream-step.ts";
import { toolUse } from "../to-messages/response.ts";
import { readUsage } from "../usage.ts";
import { toGeminiError } from "./error.ts";
import { callPart, finishMembers, partsOrEmpty, thoughtPart, usageMetadata } from "./response.ts";

const maxCalls = 128;

interface Call {
  readonly id: string;
  readonly name: string;
  arguments: string;
}

/**
 * Returns a function that translates the events of a chat stream, in their order, to the responses of a Gemini stream, by the
 * rules for a whole response. Calls of functions come whole in that API, so they follow in its last response. The function
 * throws PROVIDER_INVALID and MODEL_UNTRANSLATABLE, and must not be called after that.
 */
export function toGeminiStream(showsThoughts: boolean): (event: WireEvent) => readonly JsonObject[] {
  const stream = new ToGeminiStream(showsThoughts);
  return (event) => stream.push(event);
}

class ToGeminiStream {
  readonly #showsThoughts: boolean;
  readonly #calls = new Map<number, Call>();
  #head: JsonObject | undefined;
  #finish: string | undefined;
  #refusal: string | undefined;
  #usage: TokenUsage | undefined;
  #hasFailed = false;

  constructor(showsThoughts: boolean) {
    this.#showsThoughts = showsThoughts;
  }

  push(event: WireEvent): readonly JsonObject[] {
    if (event.keepAlive === true) return [];
    if (event.data === doneData) return this.#hasFailed ? [] : [this.#end()];
    const chunk = eventObject(event);
    if (isGiven(chunk.error)) {
      this.#hasFailed = true;
      return [toGeminiError(500, chunk)];
    }
    this.#usage = readUsage("chat", chunk) ?? this.#usage;
    const members = new Members(chunk, "", "PROVIDER_INVALID");
    this.#head ??= { modelVersion: members.requiredString("model"), responseId: members.requiredString("id") };
    const parts = members.items("choices").flatMap((choice) => this.#choice(choice));
    return parts.length === 0 ? [] : [this.#response(parts, {})];
  }

  #choice(choice: Members): readonly JsonObject[] {
    if (choice.number("index") !== 0) throw untranslatable(choice.at("index"), "expected 0");
    choice.neutral("logprobs");
    this.#finish = choice.string("finish_reason") ?? this.#finish;
    const delta = choice.members("delta");
    return delta === undefined ? [] : this.#delta(delta);
  }

  #delta(delta: Members): readonly JsonObject[] {
    delta.string("role");
    const thinking = delta.string("reasoning_content") ?? "";
    const text = delta.string("content") ?? "";
    const refusal = delta.string("refusal");
    if (refusal !== undefined) this.#refusal = (this.#refusal ?? "") + refusal;
    for (const [place, call] of delta.items("tool_calls").entries()) this.#call(call, place);
    delta.neutral("annotations");
    delta.end();
    return [
      ...(thinking === "" || !this.#showsThoughts ? [] : [thoughtPart(thinking)]),
      ...(text === "" ? [] : [{ text }]),
    ];
  }

  /** Reads one entry of a delta's `tool_calls`, as the translation to the messages API does. */
  #call(entry: Members, place: number): void {
    const given = entry.take("index") ?? null;
    const index = indexAt(given ?? place, entry.at("index"), maxCalls);
    const id = entry.string("id");
    if ((entry.string("type") ?? "function") !== "function") throw untranslatable(entry.at("type"));
    const named = entry.members("function");
    entry.end();
    const name = named?.string("name");
    const text = named?.string("arguments") ?? "";
    named?.end();
    const known = this.#calls.get(index);
    if (known !== undefined) {
      if (given === null && id !== undefined) {
        throw entry.expected("index", "given where calls come in more than one chunk");
      }
      known.arguments += text;
    } else if (id === undefined || name === undefined) {
      throw entry.expected("function", "the name and the id of a new call");
    } else this.#calls.set(index, { id, name, arguments: text });
  }

  /** The last response: the calls, the reason of the end, and the usage, which the chat API sends behind it. */
  #end(): JsonObject {
    if (this.#finish === undefined || this.#head === undefined) {
      throw new GatewayError("PROVIDER_INVALID", "expected a `finish_reason` before the end");
    }
    const calls = [...this.#calls.values()].map(({ id, ...named }) => {
      const call = new Members({ id, function: named }, "choices[0].delta.tool_calls", "PROVIDER_INVALID");
      return callPart(toolUse(call));
    });
    return this.#response(partsOrEmpty(calls), finishMembers(this.#finish, this.#refusal));
  }

  #response(parts: readonly JsonObject[], finish: JsonObject): JsonObject {
    const isLast = Object.keys(finish).length > 0;
    return {
      candidates: [{ content: { role: "model", parts }, ...finish, index: 0 }],
      ...(isLast ? usageMetadata(this.#usage) : {}),
      ...this.#head,
    };
  }
}
