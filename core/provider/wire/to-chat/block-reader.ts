import type { JsonObject } from "../../../kernel/json.ts";
import { Members, untranslatable } from "../member.ts";
import { indexAt, invalid } from "../stream-shape.ts";
import { directCaller } from "./tool-call.ts";

interface Block {
  readonly type: string;
  /** Of a call of a tool: which one it is, and whether any of its arguments came. */
  readonly call: number;
  argued: boolean;
  open: boolean;
}

const mostBlocks = 1_024;

/** Reads the events of blocks as what each adds to the message of a chat answer. */
export class BlockReader {
  readonly #blocks: Block[] = [];
  #calls = 0;

  /** The deltas that an event about a block stands for. */
  read(data: JsonObject): readonly JsonObject[] {
    if (data.type === "content_block_start") return this.#start(data);
    if (data.type === "content_block_delta") return this.#add(data);
    if (data.type === "content_block_stop") return this.#stop(data);
    throw untranslatable("type", `\`${String(data.type).slice(0, 64)}\``);
  }

  #start(data: JsonObject): readonly JsonObject[] {
    if (indexAt(data.index, "index", mostBlocks) !== this.#blocks.length) throw invalid("index", "the next one");
    const block = new Members(data.content_block, "content_block", "PROVIDER_INVALID");
    const type = block.requiredString("type");
    const call = type === "tool_use" ? this.#calls++ : -1;
    this.#blocks.push({ type, call, argued: false, open: true });
    if (type === "redacted_thinking") return [];
    const deltas = this.#begun(block, type, call);
    block.end();
    return deltas;
  }

  #begun(block: Members, type: string, call: number): readonly JsonObject[] {
    if (type === "text") {
      block.neutral("citations");
      return said("content", block.string("text"));
    }
    if (type === "thinking") {
      block.string("signature");
      return said("reasoning_content", block.string("thinking"));
    }
    if (type !== "tool_use") throw untranslatable(block.at("type"), `\`${type.slice(0, 64)}\``);
    directCaller(block);
    const input = block.object("input") ?? {};
    const named = { name: block.requiredString("name"), arguments: "" };
    const begun = callDelta({ index: call, id: block.requiredString("id"), type: "function", function: named });
    return Object.keys(input).length === 0
      ? [begun]
      : [begun, this.#argue(JSON.stringify(input), this.#blocks.length - 1)];
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
    if (type === "text_delta" && of === "text") return said("content", delta.requiredString("text"));
    if (type === "thinking_delta" && of === "thinking") {
      return said("reasoning_content", delta.requiredString("thinking"));
    }
    if (type === "signature_delta" && of === "thinking") {
      delta.requiredString("signature");
      return [];
    }
    if (type !== "input_json_delta" || of !== "tool_use")
      throw untranslatable(delta.at("type"), `\`${type.slice(0, 64)}\``);
    const text = delta.requiredString("partial_json");
    return text === "" ? [] : [this.#argue(text, index)];
  }

  /** The arguments of a call are a text of JSON: where none came, they are an empty object. */
  #stop(data: JsonObject): readonly JsonObject[] {
    const index = this.#index(data);
    const block = this.#blocks[index] as Block;
    block.open = false;
    return block.type === "tool_use" && !block.argued ? [this.#argue("{}", index)] : [];
  }

  #argue(text: string, index: number): JsonObject {
    const block = this.#blocks[index] as Block;
    block.argued = true;
    return callDelta({ index: block.call, function: { arguments: text } });
  }

  #index(data: JsonObject): number {
    const index = indexAt(data.index, "index", mostBlocks);
    if (this.#blocks[index]?.open !== true) throw invalid("index", "that of a block that is open");
    return index;
  }
}

function said(member: string, text: string | undefined): readonly JsonObject[] {
  return text === undefined || text === "" ? [] : [{ [member]: text }];
}

function callDelta(call: JsonObject): JsonObject {
  return { tool_calls: [call] };
}
