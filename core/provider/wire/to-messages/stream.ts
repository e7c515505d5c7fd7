import { GatewayError } from "../../../action/error.ts";
import type { Json, JsonObject } from "../../../action/json.ts";
import type { TokenUsage } from "../../../action/model-api.ts";
import { readDelta, readFinish, readToolCall } from "../chat-answer.ts";
import { stopReason } from "../content.ts";
import { translateError } from "../error-shape.ts";
import { doneData, eventObject, jsonEvent, textEvent, type WireEvent } from "../event-reader.ts";
import { Members } from "../member.ts";
import { invalid } from "../stream-step.ts";
import { readUsage, writeUsage } from "../usage.ts";
import { refusalDetails } from "./response.ts";

const maxRefusal = 64 * 1024;

/** Translates a stream of the chat API to one of the messages API, by the rules for a whole response. */
export class ToMessagesStream {
  readonly #blocks = new BlockWriter();
  #hasBegun = false;
  #finish: string | undefined;
  #refusal: string | undefined;
  #usage: TokenUsage | undefined;
  #hasEnded = false;

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  push(event: WireEvent): readonly WireEvent[] {
    if (event.keepAlive === true) return [jsonEvent("messages", { type: "ping" })];
    if (event.data === doneData) return this.#end();
    const chunk = eventObject(event);
    if (chunk.error !== undefined && chunk.error !== null) {
      this.#hasEnded = true;
      const error = translateError("chat", "messages", 500, chunk);
      return [jsonEvent("messages", error)];
    }
    this.#usage = readUsage("chat", chunk) ?? this.#usage;
    return [...this.#begin(chunk), ...this.#choices(new Members(chunk, "", "PROVIDER_INVALID"))];
  }

  #begin(chunk: JsonObject): readonly WireEvent[] {
    if (this.#hasBegun) return [];
    this.#hasBegun = true;
    const head = new Members(chunk, "", "PROVIDER_INVALID");
    const message = {
      id: head.requiredString("id"),
      type: "message",
      role: "assistant",
      model: head.requiredString("model"),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: writeUsage("messages", undefined),
    };
    return [jsonEvent("messages", { type: "message_start", message })];
  }

  #choices(chunk: Members): readonly WireEvent[] {
    return chunk.items("choices").flatMap((choice) => {
      this.#finish = readFinish(choice) ?? this.#finish;
      return this.#delta(choice);
    });
  }

  #delta(choice: Members): readonly WireEvent[] {
    const delta = choice.members("delta");
    const { thinking, text, refusal, calls } = readDelta(delta);
    if (delta !== undefined && refusal !== undefined) this.#refuse(delta, refusal);
    return [
      ...(thinking === "" ? [] : this.#blocks.write("thinking", thinking)),
      ...(text === "" ? [] : this.#blocks.write("text", text)),
      ...calls.flatMap((call, place) => this.#blocks.call(call, place)),
    ];
  }

  /** Collects a refusal, which the messages API reports in one piece at the end. */
  #refuse(delta: Members, words: string): void {
    this.#refusal = (this.#refusal ?? "") + words;
    if (this.#refusal.length > maxRefusal) {
      throw delta.expected("refusal", `at most ${maxRefusal} characters in all`);
    }
  }

  #end(): readonly WireEvent[] {
    const finish = this.#finish;
    if (finish === undefined) throw new GatewayError("PROVIDER_INVALID", "expected a `finish_reason` before the end");
    this.#hasEnded = true;
    const refusal = this.#refusal;
    const content = { callsTool: this.#blocks.callsTool, refuses: refusal !== undefined };
    const delta: Record<string, Json> = {
      stop_reason: stopReason(finish, content, "choices[0].finish_reason"),
      stop_sequence: null,
      ...(refusal === undefined ? {} : { stop_details: refusalDetails(refusal) }),
    };
    return [
      ...this.#blocks.finish(),
      jsonEvent("messages", { type: "message_delta", delta, usage: writeUsage("messages", this.#usage) }),
      textEvent('{"type":"message_stop"}', "message_stop"),
    ];
  }
}

interface Call {
  /** The index of its block. */
  readonly index: number;
  readonly input: JsonExtent;
  open: boolean;
}

const callMembers = "choices[0].delta.tool_calls";

/**
 * Writes the deltas of a chat response as blocks, one after the other. Only tool calls whose arguments interleave are open
 * at the same time.
 */
class BlockWriter {
  readonly #calls = new Map<number, Call>();
  #next = 0;
  #text: { readonly index: number; readonly type: "text" | "thinking" } | undefined;

  get callsTool(): boolean {
    return this.#calls.size > 0;
  }

  write(type: "text" | "thinking", text: string): readonly WireEvent[] {
    const events: WireEvent[] = [];
    if (this.#text?.type !== type) {
      const block = type === "text" ? { type, text: "" } : { type, thinking: "", signature: "" };
      events.push(...this.#stopWhole(), startEvent(this.#next, block));
      this.#text = { index: this.#next++, type };
    }
    const delta = type === "text" ? { type: "text_delta", text } : { type: "thinking_delta", thinking: text };
    return [...events, deltaEvent(this.#text.index, delta)];
  }

  /** Writes the entry of a delta's `tool_calls` that stands at `place`. */
  call(entry: Members, place: number): readonly WireEvent[] {
    const { index, text, begun } = readToolCall(entry, place, this.#calls);
    if (begun === undefined) return append(this.#calls.get(index) as Call, text);
    const stopped = this.#stopWhole();
    const call = { index: this.#next++, input: new JsonExtent(), open: true };
    this.#calls.set(index, call);
    return [...stopped, startEvent(call.index, { type: "tool_use", ...begun, input: {} }), ...append(call, text)];
  }

  /** Ends every block that is still open. */
  finish(): readonly WireEvent[] {
    return [...this.#stopText(), ...[...this.#calls.values()].filter(({ open }) => open).map(stop)];
  }

  /** Ends the complete blocks before the next one begins. */
  #stopWhole(): readonly WireEvent[] {
    const whole = [...this.#calls.values()].filter(({ open, input }) => open && input.isClosed);
    return [...this.#stopText(), ...whole.map(stop)];
  }

  #stopText(): readonly WireEvent[] {
    const text = this.#text;
    this.#text = undefined;
    return text === undefined ? [] : [stopEvent(text.index)];
  }
}

function append(call: Call, text: string): readonly WireEvent[] {
  if (text === "") return [];
  if (!call.open) {
    if (text.trim() === "") return [];
    throw invalid(callMembers, "without arguments behind the end of those of a call");
  }
  call.input.push(text);
  return [deltaEvent(call.index, { type: "input_json_delta", partial_json: text })];
}

function stop(call: Call): WireEvent {
  call.open = false;
  return stopEvent(call.index);
}

function startEvent(index: number, block: JsonObject): WireEvent {
  return jsonEvent("messages", { type: "content_block_start", index, content_block: block });
}

function deltaEvent(index: number, delta: JsonObject): WireEvent {
  return jsonEvent("messages", { type: "content_block_delta", index, delta });
}

function stopEvent(index: number): WireEvent {
  return jsonEvent("messages", { type: "content_block_stop", index });
}

/** Finds the end of one JSON object in a text that arrives in pieces, reading each character once. */
class JsonExtent {
  #depth = 0;
  #hasBegun = false;
  #isInString = false;
  #isEscaped = false;

  push(text: string): void {
    for (const character of text) {
      if (this.#isInString) this.#pushInString(character);
      else if (character === '"') this.#isInString = true;
      else if (character === "{" || character === "[") {
        this.#depth++;
        this.#hasBegun = true;
      } else if (character === "}" || character === "]") this.#depth--;
    }
  }

  /** True if the object has ended, so that only blanks may follow. */
  get isClosed(): boolean {
    return this.#hasBegun && this.#depth <= 0;
  }

  #pushInString(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === "\\") this.#isEscaped = true;
    else if (character === '"') this.#isInString = false;
  }
}
