import { GatewayError } from "../../../kernel/error.ts";
import type { Json, JsonObject } from "../../../kernel/json.ts";
import type { TokenUsage } from "../../../kernel/token-usage.ts";
import { translateError } from "../error-shape.ts";
import { doneData, eventObject, jsonEvent, textEvent, type WireEvent } from "../event.ts";
import { Members, untranslatable } from "../member.ts";
import { stopReason } from "../stop-reason.ts";
import { readUsage, writeUsage } from "../usage.ts";
import { BlockWriter } from "./block-writer.ts";
import { refusalDetails } from "./response.ts";

const longestRefusal = 64 * 1024;

/** A stream of the chat API as one of the messages API. What it says is translated or refused, as of a whole answer. */
export class ToMessagesStream {
  readonly #blocks = new BlockWriter();
  #begun = false;
  #finish: string | undefined;
  #refusal: string | undefined;
  #usage: TokenUsage | undefined;
  #ended = false;

  get ended(): boolean {
    return this.#ended;
  }

  push(event: WireEvent): readonly WireEvent[] {
    if (event.keepAlive === true) return [jsonEvent("messages", { type: "ping" })];
    if (event.data === doneData) return this.#end();
    const chunk = eventObject(event);
    if (chunk.error !== undefined && chunk.error !== null) {
      this.#ended = true;
      const error = translateError("chat", "messages", 500, chunk);
      return [jsonEvent("messages", error)];
    }
    this.#usage = readUsage("chat", chunk) ?? this.#usage;
    return [...this.#begin(chunk), ...this.#choices(new Members(chunk, "", "PROVIDER_INVALID"))];
  }

  #begin(chunk: JsonObject): readonly WireEvent[] {
    if (this.#begun) return [];
    this.#begun = true;
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
      if (choice.number("index") !== 0) throw untranslatable(choice.at("index"), "expected 0");
      choice.neutral("logprobs");
      this.#finish = choice.string("finish_reason") ?? this.#finish;
      const delta = choice.members("delta");
      return delta === undefined ? [] : this.#delta(delta);
    });
  }

  #delta(delta: Members): readonly WireEvent[] {
    delta.string("role");
    const thinking = delta.string("reasoning_content") ?? "";
    const text = delta.string("content") ?? "";
    this.#refuse(delta);
    const calls = delta.items("tool_calls");
    delta.neutral("annotations");
    delta.end();
    return [
      ...(thinking === "" ? [] : this.#blocks.write("thinking", thinking)),
      ...(text === "" ? [] : this.#blocks.write("text", text)),
      ...calls.flatMap((call) => this.#blocks.call(call)),
    ];
  }

  /** The messages API says a refusal in one piece, at the end. */
  #refuse(delta: Members): void {
    const words = delta.string("refusal");
    if (words === undefined) return;
    this.#refusal = (this.#refusal ?? "") + words;
    if (this.#refusal.length > longestRefusal) {
      throw delta.expected("refusal", `at most ${longestRefusal} characters in all`);
    }
  }

  #end(): readonly WireEvent[] {
    const finish = this.#finish;
    if (finish === undefined) throw new GatewayError("PROVIDER_INVALID", "expected a `finish_reason` before the end");
    this.#ended = true;
    const refusal = this.#refusal;
    const said = { callsTool: this.#blocks.callsTool, refuses: refusal !== undefined };
    const delta: Record<string, Json> = {
      stop_reason: stopReason(finish, said, "choices[0].finish_reason"),
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
