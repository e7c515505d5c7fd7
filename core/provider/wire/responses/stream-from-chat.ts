import { GatewayError } from "../../../action/error.ts";
import { isGiven, type JsonObject } from "../../../action/json.ts";
import type { TokenUsage } from "../../../action/model-api.ts";
import { readDelta, readFinish, readToolCall } from "../chat-answer.ts";
import type { ResponseOptions } from "../content.ts";
import { translateError } from "../error-shape.ts";
import { doneData, eventObject, jsonEvent, keepAliveEvent, type WireEvent } from "../event-reader.ts";
import { Members } from "../member.ts";
import { readUsage } from "../usage.ts";
import {
  endOf,
  functionCallItem,
  messageItem,
  outputRefusal,
  outputText,
  type ResponseEnd,
  reasoningItem,
  reasoningText,
  responseObject,
} from "./answer.ts";
import { failureEvent } from "./failure.ts";

const underWay: ResponseEnd = { status: "in_progress", reason: null };

/** Translates a stream of the chat API to one of the responses API, by the rules for a whole response. */
export class ChatToResponsesStream {
  readonly #options: ResponseOptions;
  #writer: ItemWriter | undefined;
  #head: { readonly id: string; readonly model: string } | undefined;
  #end: ResponseEnd | undefined;
  #usage: TokenUsage | undefined;
  #sequence = 0;
  #hasEnded = false;

  constructor(options: ResponseOptions) {
    this.#options = options;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  push(event: WireEvent): readonly WireEvent[] {
    if (event.keepAlive === true) return [keepAliveEvent()];
    if (event.data === doneData) return this.#finish();
    const chunk = eventObject(event);
    if (isGiven(chunk.error)) return [this.#fail(chunk)];
    this.#usage = readUsage("chat", chunk) ?? this.#usage;
    return this.#number([...this.#begin(chunk), ...this.#choices(new Members(chunk, "", "PROVIDER_INVALID"))]);
  }

  #begin(chunk: JsonObject): readonly JsonObject[] {
    if (this.#head !== undefined) return [];
    const head = new Members(chunk, "", "PROVIDER_INVALID");
    this.#head = { id: head.requiredString("id"), model: head.requiredString("model") };
    this.#writer = new ItemWriter(this.#head.id);
    const response = this.#response(underWay);
    return [
      { type: "response.created", response },
      { type: "response.in_progress", response },
    ];
  }

  #choices(chunk: Members): readonly JsonObject[] {
    return chunk.items("choices").flatMap((choice) => {
      const finish = readFinish(choice);
      if (finish !== undefined) this.#end = endOf(finish, choice.at("finish_reason"));
      return (this.#writer as ItemWriter).write(choice.members("delta"));
    });
  }

  #finish(): readonly WireEvent[] {
    const end = this.#end;
    const writer = this.#writer;
    if (end === undefined || writer === undefined) {
      throw new GatewayError("PROVIDER_INVALID", "expected a `finish_reason` before the end");
    }
    this.#hasEnded = true;
    const closed = writer.finish(end.status);
    return this.#number([...closed, { type: `response.${end.status}`, response: this.#response(end, writer.output) }]);
  }

  #fail(chunk: JsonObject): WireEvent {
    this.#hasEnded = true;
    const { error } = translateError("chat", "responses", 500, chunk);
    const { id, model } = this.#head ?? {};
    const head = { id: id ?? "resp_failed", model: model ?? "", created_at: this.#options.created ?? 0 };
    return failureEvent({ error: error as JsonObject, isFinal: false, sequence: this.#sequence, head });
  }

  #response(end: ResponseEnd, output: readonly JsonObject[] = []): JsonObject {
    const { id, model } = this.#head as { readonly id: string; readonly model: string };
    const usage = end === underWay ? undefined : this.#usage;
    return responseObject({ id, model, end, output, usage, options: this.#options });
  }

  #number(events: readonly JsonObject[]): readonly WireEvent[] {
    return events.map(({ type, ...data }) =>
      jsonEvent("responses", { type: type as string, sequence_number: this.#sequence++, ...data }),
    );
  }
}

/** A part of the text item that is open. */
interface TextPart {
  readonly kind: TextKind;
  text: string;
}

type TextKind = "reasoning_text" | "output_text" | "refusal";

interface CallItem {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  text: string;
}

interface TextItem {
  readonly index: number;
  readonly id: string;
  readonly isReasoning: boolean;
  readonly parts: TextPart[];
}

/** Writes the deltas of a chat response as items. One text is open at a time; calls stay open until the end. */
class ItemWriter {
  readonly #id: string;
  /** The items that are complete, by their place. */
  readonly #done = new Map<number, JsonObject>();
  readonly #calls = new Map<number, CallItem>();
  #open: TextItem | undefined;
  #next = 0;

  constructor(id: string) {
    this.#id = id;
  }

  get output(): readonly JsonObject[] {
    return [...this.#done].sort(([a], [b]) => a - b).map(([, item]) => item);
  }

  write(delta: Members | undefined): readonly JsonObject[] {
    const { thinking, text, refusal = "", calls } = readDelta(delta);
    return [
      ...this.#text("reasoning_text", thinking),
      ...this.#text("output_text", text),
      ...this.#text("refusal", refusal),
      ...calls.flatMap((call, place) => this.#call(call, place)),
    ];
  }

  /** Completes every item that is open. */
  finish(status: string): readonly JsonObject[] {
    const text = this.#closeText(status);
    return [...text, ...[...this.#calls.values()].flatMap((call) => this.#closeCall(call))];
  }

  #text(kind: TextKind, text: string): readonly JsonObject[] {
    if (text === "") return [];
    const begun = this.#begin(kind);
    const { index, id, parts } = this.#open as TextItem;
    const part = parts.at(-1) as TextPart;
    part.text += text;
    const more = kind === "output_text" ? { logprobs: [] } : {};
    const place = { item_id: id, output_index: index, content_index: parts.length - 1 };
    return [...begun, { type: `response.${kind}.delta`, ...place, delta: text, ...more }];
  }

  /** Opens the part that a text belongs to, after closing what is open and not it. */
  #begin(kind: TextKind): readonly JsonObject[] {
    const events: JsonObject[] = [];
    const isReasoning = kind === "reasoning_text";
    if (this.#open !== undefined && this.#open.isReasoning !== isReasoning)
      events.push(...this.#closeText("completed"));
    if (this.#open === undefined) {
      const index = this.#next++;
      const id = `${isReasoning ? "rs" : "msg"}_${this.#id}${index === 0 ? "" : `_${index}`}`;
      this.#open = { index, id, isReasoning, parts: [] };
      events.push({ type: "response.output_item.added", output_index: index, item: itemOf(this.#open, "in_progress") });
    }
    const { index, id, parts } = this.#open;
    const last = parts.at(-1);
    if (last?.kind === kind) return events;
    if (last !== undefined) events.push(...closePart(this.#open, last));
    parts.push({ kind, text: "" });
    const place = { item_id: id, output_index: index, content_index: parts.length - 1 };
    return [...events, { type: "response.content_part.added", ...place, part: partOf({ kind, text: "" }) }];
  }

  #closeText(status: string): readonly JsonObject[] {
    const item = this.#open;
    if (item === undefined) return [];
    this.#open = undefined;
    const done = itemOf(item, status);
    this.#done.set(item.index, done);
    return [
      ...closePart(item, item.parts.at(-1) as TextPart),
      { type: "response.output_item.done", output_index: item.index, item: done },
    ];
  }

  /** Writes the entry of a delta's `tool_calls` that stands at `place`. */
  #call(entry: Members, place: number): readonly JsonObject[] {
    const { index, text, begun } = readToolCall(entry, place, this.#calls);
    if (begun === undefined) return extend(this.#calls.get(index) as CallItem, text);
    const closed = this.#closeText("completed");
    const call = { index: this.#next++, ...begun, text: "" };
    this.#calls.set(index, call);
    const item = functionCallItem(begun.id, begun.name, "", "in_progress");
    const added = { type: "response.output_item.added", output_index: call.index, item };
    return [...closed, added, ...extend(call, text)];
  }

  /** Ends a call. One without arguments gets an empty JSON object. */
  #closeCall(call: CallItem): readonly JsonObject[] {
    const filled = call.text.trim() === "" ? extend(call, "{}") : [];
    const item = functionCallItem(call.id, call.name, call.text, "completed");
    this.#done.set(call.index, item);
    const done = { item_id: `fc_${call.id}`, output_index: call.index, name: call.name, arguments: call.text };
    return [
      ...filled,
      { type: "response.function_call_arguments.done", ...done },
      { type: "response.output_item.done", output_index: call.index, item },
    ];
  }
}

function extend(call: CallItem, text: string): readonly JsonObject[] {
  if (text === "") return [];
  call.text += text;
  const place = { item_id: `fc_${call.id}`, output_index: call.index };
  return [{ type: "response.function_call_arguments.delta", ...place, delta: text }];
}

function closePart({ index, id, parts }: TextItem, part: TextPart): readonly JsonObject[] {
  const place = { item_id: id, output_index: index, content_index: parts.indexOf(part) };
  const whole = part.kind === "refusal" ? { refusal: part.text } : { text: part.text };
  const more = part.kind === "output_text" ? { logprobs: [] } : {};
  return [
    { type: `response.${part.kind}.done`, ...place, ...whole, ...more },
    { type: "response.content_part.done", ...place, part: partOf(part) },
  ];
}

function partOf({ kind, text }: TextPart): JsonObject {
  if (kind === "reasoning_text") return reasoningText(text);
  return kind === "refusal" ? outputRefusal(text) : outputText(text);
}

function itemOf({ id, isReasoning, parts }: TextItem, status: string): JsonObject {
  const content = parts.map(partOf);
  return isReasoning ? reasoningItem(id, content) : messageItem(id, content, status);
}
