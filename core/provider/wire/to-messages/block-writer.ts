import type { JsonObject } from "../../../kernel/json.ts";
import { jsonEvent, type WireEvent } from "../event.ts";
import { type Members, untranslatable } from "../member.ts";
import { indexAt, invalid } from "../stream-shape.ts";
import { JsonExtent } from "./json-extent.ts";

interface Call {
  /** Of its block. */
  readonly index: number;
  readonly input: JsonExtent;
  open: boolean;
}

const callMembers = "choices[0].delta.tool_calls";
const mostCalls = 128;

/**
 * Writes the deltas of a chat answer as blocks, one after the other. Calls whose arguments come by turns are the only
 * blocks that are open at once.
 */
export class BlockWriter {
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

  /** One entry of a delta's `tool_calls`: the first of an index names the tool, all of them add to its arguments. */
  call(entry: Members): readonly WireEvent[] {
    const index = indexAt(entry.take("index"), entry.at("index"), mostCalls);
    const id = entry.string("id");
    if ((entry.string("type") ?? "function") !== "function") throw untranslatable(entry.at("type"));
    const named = entry.members("function");
    entry.end();
    const name = named?.string("name");
    const text = named?.string("arguments") ?? "";
    named?.end();
    const known = this.#calls.get(index);
    if (known !== undefined) return append(known, text);
    if (id === undefined || name === undefined) throw entry.expected("function", "the name and the id of a new call");
    const stopped = this.#stopWhole();
    const call = { index: this.#next++, input: new JsonExtent(), open: true };
    this.#calls.set(index, call);
    return [...stopped, startEvent(call.index, { type: "tool_use", id, name, input: {} }), ...append(call, text)];
  }

  /** Ends every block that is still open. */
  finish(): readonly WireEvent[] {
    return [...this.#stopText(), ...[...this.#calls.values()].filter(({ open }) => open).map(stop)];
  }

  /** Ends the blocks to which nothing can be added, before the next one begins. */
  #stopWhole(): readonly WireEvent[] {
    const whole = [...this.#calls.values()].filter(({ open, input }) => open && input.closed);
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
