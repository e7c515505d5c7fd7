import { GatewayError } from "../../../action/error.ts";
import type { JsonObject } from "../../../action/json.ts";
import { finishReason, type ResponseOptions } from "../content.ts";
import { translateError } from "../error-shape.ts";
import { doneData, eventObject, jsonEvent, keepAliveEvent, textEvent, type WireEvent } from "../event-reader.ts";
import { Members, untranslatable } from "../member.ts";
import { indexAt, invalid, objectAt } from "../stream-step.ts";
import { readUsage, writeUsage } from "../usage.ts";
import { directCaller, refusalExplanation } from "./response.ts";

/** Translates a stream of the messages API to one of the chat API, by the rules for a whole response. */
export class ToChatStream {
  readonly #options: ResponseOptions;
  readonly #blocks = new BlockReader();
  #head: JsonObject | undefined;
  #usage: JsonObject = {};
  #isFinished = false;
  #hasEnded = false;

  constructor(options: ResponseOptions) {
    this.#options = options;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  push(event: WireEvent): readonly WireEvent[] {
    if (event.keepAlive === true) return [keepAliveEvent()];
    const data = eventObject(event);
    if (event.event !== data.type) throw invalid("type", "the name of the event");
    switch (data.type) {
      case "ping":
        return [keepAliveEvent()];
      case "error":
        this.#hasEnded = true;
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
    const words = refusalExplanation(delta?.members("stop_details"));
    const refusal = words === undefined ? [] : [this.#chunk({ refusal: words }, null)];
    if (reason === undefined) return refusal;
    this.#isFinished = true;
    return [...refusal, this.#chunk({}, finishReason(reason, "delta.stop_reason"))];
  }

  #end(): readonly WireEvent[] {
    if (!this.#isFinished) throw new GatewayError("PROVIDER_INVALID", "expected a `stop_reason` before the end");
    this.#hasEnded = true;
    const done = textEvent(doneData);
    const usage = this.#counted();
    if (this.#options.includeUsage !== true || usage === undefined) return [done];
    return [jsonEvent("chat", { ...this.#head, choices: [], usage }), done];
  }

  /** Puts the usage in the last chunk of the choice, unless the client requested it in a chunk of its own. */
  #chunk(delta: JsonObject, finish: string | null): WireEvent {
    if (this.#head === undefined) throw invalid("type", "`message_start` before all others");
    const usage = finish === null || this.#options.includeUsage === true ? undefined : this.#counted();
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    return jsonEvent("chat", { ...this.#head, choices, ...(usage === undefined ? {} : { usage }) });
  }

  #count(usage: JsonObject | undefined): void {
    const counted = Object.entries(objectAt(usage, "usage")).filter(([, value]) => value !== null);
    this.#usage = { ...this.#usage, ...Object.fromEntries(counted) };
  }

  #counted(): JsonObject | undefined {
    const usage = readUsage("messages", { usage: this.#usage });
    return usage === undefined ? undefined : (writeUsage("chat", usage) as JsonObject);
  }
}

interface Block {
  readonly type: string;
  /** The number of the tool call, or -1 for other blocks. */
  readonly call: number;
  hasArguments: boolean;
  open: boolean;
}

const maxBlocks = 1_024;

/** Translates block events to deltas of a chat message. */
class BlockReader {
  readonly #blocks: Block[] = [];
  #calls = 0;

  /** Returns the deltas for one block event. */
  read(data: JsonObject): readonly JsonObject[] {
    if (data.type === "content_block_start") return this.#start(data);
    if (data.type === "content_block_delta") return this.#add(data);
    if (data.type === "content_block_stop") return this.#stop(data);
    throw untranslatable("type", `\`${String(data.type).slice(0, 64)}\``);
  }

  #start(data: JsonObject): readonly JsonObject[] {
    if (indexAt(data.index, "index", maxBlocks) !== this.#blocks.length) throw invalid("index", "the next one");
    const block = new Members(data.content_block, "content_block", "PROVIDER_INVALID");
    const type = block.requiredString("type");
    const call = type === "tool_use" ? this.#calls++ : -1;
    this.#blocks.push({ type, call, hasArguments: false, open: true });
    if (type === "redacted_thinking") return [];
    const deltas = this.#begun(block, type, call);
    block.end();
    return deltas;
  }

  #begun(block: Members, type: string, call: number): readonly JsonObject[] {
    if (type === "text") {
      block.neutral("citations");
      return textDelta("content", block.string("text"));
    }
    if (type === "thinking") {
      block.string("signature");
      return textDelta("reasoning_content", block.string("thinking"));
    }
    if (type !== "tool_use") throw untranslatable(block.at("type"), `\`${type.slice(0, 64)}\``);
    directCaller(block);
    const input = block.object("input") ?? {};
    const named = { name: block.requiredString("name"), arguments: "" };
    const begun = callDelta({ index: call, id: block.requiredString("id"), type: "function", function: named });
    return Object.keys(input).length === 0
      ? [begun]
      : [begun, this.#argumentsDelta(JSON.stringify(input), this.#blocks.length - 1)];
  }

  #add(data: JsonObject): readonly JsonObject[] {
    const index = this.#index(data);
    const delta = new Members(data.delta, "delta", "PROVIDER_INVALID");
    const type = delta.requiredString("type");
    const deltas = this.#added(delta, type, index);
    delta.end();
    return deltas;
  }

  #added(delta: Members, type: string, index: number): readonly JsonObject[] {
    const of = (this.#blocks[index] as Block).type;
    if (type === "text_delta" && of === "text") return textDelta("content", delta.requiredString("text"));
    if (type === "thinking_delta" && of === "thinking") {
      return textDelta("reasoning_content", delta.requiredString("thinking"));
    }
    if (type === "signature_delta" && of === "thinking") {
      delta.requiredString("signature");
      return [];
    }
    if (type !== "input_json_delta" || of !== "tool_use")
      throw untranslatable(delta.at("type"), `\`${type.slice(0, 64)}\``);
    const text = delta.requiredString("partial_json");
    return text === "" ? [] : [this.#argumentsDelta(text, index)];
  }

  /** Ends a block. A tool call without arguments gets an empty JSON object. */
  #stop(data: JsonObject): readonly JsonObject[] {
    const index = this.#index(data);
    const block = this.#blocks[index] as Block;
    block.open = false;
    return block.type === "tool_use" && !block.hasArguments ? [this.#argumentsDelta("{}", index)] : [];
  }

  #argumentsDelta(text: string, index: number): JsonObject {
    const block = this.#blocks[index] as Block;
    block.hasArguments = true;
    return callDelta({ index: block.call, function: { arguments: text } });
  }

  #index(data: JsonObject): number {
    const index = indexAt(data.index, "index", maxBlocks);
    if (this.#blocks[index]?.open !== true) throw invalid("index", "that of a block that is open");
    return index;
  }
}

function textDelta(member: string, text: string | undefined): readonly JsonObject[] {
  return text === undefined || text === "" ? [] : [{ [member]: text }];
}

function callDelta(call: JsonObject): JsonObject {
  return { tool_calls: [call] };
}
