import type { JsonObject } from "../../../action/json.ts";
import type { ResponseOptions } from "../content.ts";
import { translateError } from "../error-shape.ts";
import { doneData, eventObject, jsonEvent, keepAliveEvent, textEvent, type WireEvent } from "../event-reader.ts";
import { Members, untranslatable } from "../member.ts";
import { indexAt, invalid } from "../stream-step.ts";
import { readUsage, writeUsage } from "../usage.ts";
import { finishOf } from "./answer.ts";
import { directItem } from "./request-to-chat.ts";

/** Events that only say how far the provider is. */
const silent: ReadonlySet<unknown> = new Set(["response.in_progress", "response.queued", "keepalive"]);

/** Translates a stream of the responses API to one of the chat API, by the rules for a whole response. */
export class ResponsesToChatStream {
  readonly #options: ResponseOptions;
  readonly #items = new ItemReader();
  #head: JsonObject | undefined;
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
    if (event.event !== undefined && event.event !== data.type) throw invalid("type", "the name of the event");
    if (silent.has(data.type)) return [keepAliveEvent()];
    switch (data.type) {
      case "error":
        return this.#fail(data.error === undefined ? { error: data } : data);
      case "response.created":
        return this.#begin(new Members(data.response, "response", "PROVIDER_INVALID"));
      case "response.failed":
        return this.#fail(new Members(data.response, "response", "PROVIDER_INVALID").take("error") ?? {});
      case "response.completed":
      case "response.incomplete":
        return this.#end(data);
      default:
        return this.#items.read(data).map((delta) => this.#chunk(delta, null));
    }
  }

  #begin(response: Members): readonly WireEvent[] {
    if (this.#head !== undefined) throw invalid("type", "another than a second `response.created`");
    this.#head = {
      id: response.requiredString("id"),
      object: "chat.completion.chunk",
      created: Math.floor(response.number("created_at") ?? 0),
      model: response.requiredString("model"),
    };
    return [this.#chunk({ role: "assistant", content: "" }, null)];
  }

  #end(data: JsonObject): readonly WireEvent[] {
    const response = new Members(data.response, "response", "PROVIDER_INVALID");
    const items = response.items("output").flatMap((item, index) => this.#items.whole(item, index));
    const rest = items.map((delta) => this.#chunk(delta, null));
    const status = String(data.type).slice("response.".length);
    const finish = this.#chunk({}, finishOf(response, status, this.#items.callsTool));
    this.#hasEnded = true;
    const usage = readUsage("responses", { usage: response.object("usage") ?? null });
    const counted = usage === undefined ? {} : { usage: writeUsage("chat", usage) };
    const done = textEvent(doneData);
    if (this.#options.includeUsage !== true || usage === undefined) {
      const last = eventObject(finish);
      return [...rest, jsonEvent("chat", { ...last, ...counted }), done];
    }
    return [...rest, finish, jsonEvent("chat", { ...this.#head, choices: [], ...counted }), done];
  }

  #fail(error: unknown): readonly WireEvent[] {
    this.#hasEnded = true;
    const body = (error as JsonObject).error === undefined ? { error: error as JsonObject } : (error as JsonObject);
    return [jsonEvent("chat", translateError("responses", "chat", 500, body))];
  }

  #chunk(delta: JsonObject, finish: string | null): WireEvent {
    if (this.#head === undefined) throw invalid("type", "`response.created` before all others");
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    return jsonEvent("chat", { ...this.#head, choices });
  }
}

interface TextEvent {
  readonly to: string;
  readonly place: "content_index" | "summary_index";
}

/** The text that each event adds to, and the member of a chat message that it becomes. */
const deltas: ReadonlyMap<string, TextEvent> = new Map([
  ["response.output_text.delta", { to: "content", place: "content_index" }],
  ["response.refusal.delta", { to: "refusal", place: "content_index" }],
  ["response.reasoning_text.delta", { to: "reasoning_content", place: "content_index" }],
  ["response.reasoning_summary_text.delta", { to: "reasoning_content", place: "summary_index" }],
]);

/** Events that begin a part, or repeat it: the item at its end has all of it. */
const partEvent = /^response\.(content|reasoning_summary|reasoning)_part\.(?:added|done)$/;

const maxItems = 1_024;

interface Item {
  readonly type: string;
  /** The number of the tool call, or -1 for other items. */
  readonly call: number;
  /** The texts so far, by the member that holds them and their place in it. */
  readonly texts: Map<string, string>;
  /** The places of the parts that have begun. */
  readonly parts: Set<string>;
}

/** Translates the events of items to deltas of a chat message. */
class ItemReader {
  readonly #items: Item[] = [];
  #calls = 0;

  get callsTool(): boolean {
    return this.#calls > 0;
  }

  /** Returns the deltas for one event. */
  read(data: JsonObject): readonly JsonObject[] {
    const type = String(data.type);
    const event = new Members(data, "", "PROVIDER_INVALID");
    const text = deltas.get(type.replace(/done$/, "delta"));
    if (text !== undefined) return this.#text(event, data, text);
    if (type === "response.function_call_arguments.delta") {
      return this.#extend(this.#item(data), event.requiredString("delta"));
    }
    if (type === "response.function_call_arguments.done") {
      return this.#rest(this.#item(data), "arguments", event.string("arguments"));
    }
    const [, part] = partEvent.exec(type) ?? [];
    if (part !== undefined) {
      const place = part === "reasoning_summary" ? "summary_index" : "content_index";
      this.#item(data).parts.add(placeOf({ to: "", place }, data));
      return [];
    }
    if (type !== "response.output_item.added" && type !== "response.output_item.done") {
      throw untranslatable("type", `\`${type.slice(0, 64)}\``);
    }
    const item = event.members("item");
    if (item === undefined) throw event.expected("item", "an object");
    const index = indexAt(data.output_index, "output_index", maxItems);
    if (type.endsWith("added") && index !== this.#items.length) throw invalid("output_index", "the next one");
    return this.whole(item, index);
  }

  /** Returns the deltas for what an item has that did not come before. Throws PROVIDER_INVALID where it differs from that. */
  whole(item: Members, index: number): readonly JsonObject[] {
    const begun = index === this.#items.length ? this.#begin(item) : [];
    const known = this.#items[index];
    if (known === undefined) throw invalid("output_index", "that of an item that has begun, or the next one");
    if (known.type !== item.string("type")) throw invalid("item.type", "that of the item that began");
    if (known.type === "function_call") return [...begun, ...this.#rest(known, "arguments", item.string("arguments"))];
    const parts = (["summary", "content"] as const).flatMap((name) =>
      item.items(name).map((part, place) => [part, `${name}/${place}`] as const),
    );
    return [...begun, ...parts.flatMap(([part, place]) => this.#part(known, part, place))];
  }

  /** Reads an event that adds to a text, or repeats it. */
  #text(event: Members, data: JsonObject, text: TextEvent): readonly JsonObject[] {
    event.neutral("logprobs");
    const item = this.#item(data);
    const delta = event.string("delta");
    if (!item.parts.has(placeOf(text, data))) throw invalid(text.place, "that of a part that has begun");
    if (delta !== undefined) return this.#add(item, text.to, placeOf(text, data), delta);
    return this.#rest(item, placeOf(text, data), event.string("text") ?? event.string("refusal"), text.to);
  }

  #begin(item: Members): readonly JsonObject[] {
    const type = item.requiredString("type");
    if (type === "function_call") {
      directItem(item);
      const call = this.#calls++;
      this.#items.push({ type, call, texts: new Map(), parts: new Set() });
      const named = { name: item.requiredString("name"), arguments: "" };
      return [{ tool_calls: [{ index: call, id: item.requiredString("call_id"), type: "function", function: named }] }];
    }
    if (type !== "message" && type !== "reasoning") throw untranslatable(item.at("type"), `\`${type.slice(0, 64)}\``);
    if (this.#items.length >= maxItems) throw invalid("output_index", `below ${maxItems}`);
    this.#items.push({ type, call: -1, texts: new Map(), parts: new Set() });
    return [];
  }

  #part(item: Item, part: Members, place: string): readonly JsonObject[] {
    const type = part.requiredString("type");
    const isRefusal = type === "refusal";
    part.neutral("annotations");
    part.neutral("logprobs");
    return this.#rest(item, place, part.string(isRefusal ? "refusal" : "text"), memberOf(item, isRefusal));
  }

  /** The part of a text that is still to come. Thinking that came as a summary is not repeated in full. */
  #rest(item: Item, place: string, whole: string = "", to: string = "arguments"): readonly JsonObject[] {
    const known = item.texts.get(place) ?? "";
    if (whole === "" || whole === known) return [];
    if (!whole.startsWith(known)) throw invalid("item", "what its deltas add up to");
    const text = whole.slice(known.length);
    return item.call >= 0 ? this.#extend(item, text) : this.#add(item, to, place, text);
  }

  #add(item: Item, to: string, place: string, text: string): readonly JsonObject[] {
    const known = item.texts.get(place);
    const isNext = known === undefined && to === "reasoning_content" && !/\/0$/.test(place);
    item.texts.set(place, (known ?? "") + text);
    if (place.startsWith("content") && [...item.texts.keys()].some((key) => key.startsWith("summary"))) return [];
    return text === "" ? [] : [{ [to]: isNext ? `\n\n${text}` : text }];
  }

  #extend(item: Item, text: string): readonly JsonObject[] {
    if (item.call < 0) throw invalid("output_index", "that of a call");
    item.texts.set("arguments", (item.texts.get("arguments") ?? "") + text);
    return text === "" ? [] : [{ tool_calls: [{ index: item.call, function: { arguments: text } }] }];
  }

  #item(data: JsonObject): Item {
    const item = this.#items[indexAt(data.output_index, "output_index", maxItems)];
    if (item === undefined) throw invalid("output_index", "that of an item that has begun");
    return item;
  }
}

function placeOf({ place }: TextEvent, data: JsonObject): string {
  const name = place === "content_index" ? "content" : "summary";
  return `${name}/${indexAt(data[place], place, maxItems)}`;
}

function memberOf({ type }: Item, isRefusal: boolean): string {
  if (type === "reasoning") return "reasoning_content";
  return isRefusal ? "refusal" : "content";
}
