import { GatewayError } from "../../../kernel/error.ts";
import type { JsonObject } from "../../../kernel/json.ts";
import type { AnswerOptions } from "../answer-option.ts";
import { translateError } from "../error-shape.ts";
import { doneData, eventObject, jsonEvent, keepAliveEvent, textEvent, type WireEvent } from "../event.ts";
import { Members } from "../member.ts";
import { finishReason } from "../stop-reason.ts";
import { invalid, objectAt } from "../stream-shape.ts";
import { readUsage, writeUsage } from "../usage.ts";
import { BlockReader } from "./block-reader.ts";
import { explanation } from "./response.ts";

/** A stream of the messages API as one of the chat API. What it says is translated or refused, as of a whole answer. */
export class ToChatStream {
  readonly #options: AnswerOptions;
  readonly #blocks = new BlockReader();
  #head: JsonObject | undefined;
  #usage: JsonObject = {};
  #finished = false;
  #ended = false;

  constructor(options: AnswerOptions) {
    this.#options = options;
  }

  get ended(): boolean {
    return this.#ended;
  }

  push(event: WireEvent): readonly WireEvent[] {
    if (event.keepAlive === true) return [keepAliveEvent()];
    const data = eventObject(event);
    if (event.event !== data.type) throw invalid("type", "the name of the event");
    switch (data.type) {
      case "ping":
        return [keepAliveEvent()];
      case "error":
        this.#ended = true;
        return [jsonEvent("chat", translateError("messages", "chat", 500, data))];
      case "message_start":
        return this.#begin(data);
      case "message_delta":
        return this.#change(new Members(data, "", "PROVIDER_INVALID"));
      case "message_stop":
        return this.#end();
      default:
        return this.#blocks.read(data).map((delta) => this.#chunk(delta, null));
    }
  }

  #begin(data: JsonObject): readonly WireEvent[] {
    if (this.#head !== undefined) throw invalid("type", "another than a second `message_start`");
    const message = new Members(data.message, "message", "PROVIDER_INVALID");
    message.neutral("content");
    this.#head = {
      id: message.requiredString("id"),
      object: "chat.completion.chunk",
      created: this.#options.created ?? 0,
      model: message.requiredString("model"),
    };
    this.#count(message.object("usage"));
    return [this.#chunk({ role: "assistant", content: "" }, null)];
  }

  #change(data: Members): readonly WireEvent[] {
    this.#count(data.object("usage"));
    const delta = data.members("delta");
    const reason = delta?.string("stop_reason");
    const words = explanation(delta?.members("stop_details"));
    const refusal = words === undefined ? [] : [this.#chunk({ refusal: words }, null)];
    if (reason === undefined) return refusal;
    this.#finished = true;
    return [...refusal, this.#chunk({}, finishReason(reason, "delta.stop_reason"))];
  }

  #end(): readonly WireEvent[] {
    if (!this.#finished) throw new GatewayError("PROVIDER_INVALID", "expected a `stop_reason` before the end");
    this.#ended = true;
    const done = textEvent(doneData);
    const usage = this.#counted();
    if (this.#options.includeUsage !== true || usage === undefined) return [done];
    return [jsonEvent("chat", { ...this.#head, choices: [], usage }), done];
  }

  /** The count is in the last chunk of the choice unless it was asked for, and has a chunk of its own. */
  #chunk(delta: JsonObject, finish: string | null): WireEvent {
    if (this.#head === undefined) throw invalid("type", "`message_start` before all others");
    const usage = finish === null || this.#options.includeUsage === true ? undefined : this.#counted();
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    return jsonEvent("chat", { ...this.#head, choices, ...(usage === undefined ? {} : { usage }) });
  }

  #count(usage: JsonObject | undefined): void {
    const told = Object.entries(objectAt(usage, "usage")).filter(([, value]) => value !== null);
    this.#usage = { ...this.#usage, ...Object.fromEntries(told) };
  }

  #counted(): JsonObject | undefined {
    const usage = readUsage("messages", { usage: this.#usage });
    return usage === undefined ? undefined : (writeUsage("chat", usage) as JsonObject);
  }
}
