import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { parseStrictJson } from "../../action/strict-json.ts";
import { indexAt, invalid, isText, objectAt, type StepDraft, type TextSite } from "./stream-step.ts";
import { readUsage } from "./usage.ts";

interface Block {
  readonly start: JsonObject;
  readonly texts: Map<string, string>;
  readonly citations: Json[];
  stopped: boolean;
}

const maxBlocks = 1_024;
const inputBounds = { depth: 64, nodes: 100_000, stringLength: 8 * 1024 * 1024, reader: "tolerant" } as const;
const knownInMessage: ReadonlySet<string> = new Set(["id", "type", "role", "model", "stop_reason", "usage"]);
/** The known members of each event; a member of one event is unknown in another. */
const knownInEvent: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["ping", new Set(["type"])],
  ["message_start", new Set(["type", "message"])],
  ["content_block_start", new Set(["type", "index", "content_block"])],
  ["content_block_delta", new Set(["type", "index", "delta"])],
  ["content_block_stop", new Set(["type", "index"])],
  ["message_delta", new Set(["type", "delta", "usage"])],
  ["message_stop", new Set(["type"])],
]);

/** Assembles the response from the events of a messages stream. */
export class MessagesAssembly {
  #begun = false;
  #head: JsonObject = {};
  /** Content of the first event; no provider is known to send any. */
  #given: readonly Json[] = [];
  #usage: JsonObject = {};
  readonly #blocks = new Map<number, Block>();

  add(data: JsonObject, step: StepDraft): void {
    const known = knownInEvent.get(String(data.type));
    if (known === undefined) step.addUnknown(data, "");
    else step.addOthers(data, known, "");
    if (data.type === "message_start") this.#start(data, step);
    else if (data.type === "content_block_start") this.#startBlock(data, step);
    else if (data.type === "content_block_delta") this.#append(data, step);
    else if (data.type === "content_block_stop") this.#stopBlock(data, step);
    else if (data.type === "message_delta") this.#change(data, step);
    else if (data.type === "message_stop") step.end();
    else if (data.type === "error") step.end(data.error ?? null);
  }

  body(): JsonObject {
    const content = [...this.#blocks].sort(([a], [b]) => a - b).map(([, block]) => contentOf(block));
    return {
      ...this.#head,
      content: [...this.#given, ...content],
      ...(Object.keys(this.#usage).length === 0 ? {} : { usage: this.#usage }),
    };
  }

  #start(data: JsonObject, step: StepDraft): void {
    if (this.#begun) throw invalid("type", "another than a second `message_start`");
    this.#begun = true;
    const { content, ...message } = objectAt(data.message, "message");
    this.#head = message;
    this.#given = Array.isArray(content) ? content : [];
    if (this.#given.length > 0) step.addCall();
    step.addUnknown(content, "/message/content");
    for (const name of knownInMessage) step.addOwn(message[name], `/message/${name}`);
    step.addOthers(message, knownInMessage, "/message");
    this.#count(message.usage, step);
  }

  #startBlock(data: JsonObject, step: StepDraft): void {
    const index = indexAt(data.index, "index", maxBlocks);
    if (this.#blocks.has(index)) throw invalid("index", "that of a block that has not begun");
    const block = objectAt(data.content_block, "content_block");
    const texts = blockTexts.get(String(block.type)) ?? [];
    if (!blockTexts.has(String(block.type))) step.addCall();
    this.#blocks.set(index, { start: block, texts: new Map(), citations: [], stopped: false });
    step.addOwn(block.type, "/content_block/type");
    step.addOwn(block.id, "/content_block/id");
    for (const name of texts)
      if (typeof block[name] !== "string") step.addUnknown(block[name], `/content_block/${name}`);
    step.addOthers(block, new Set(["type", "id", ...texts]), "/content_block");
    this.#appendTexts(data, index, step);
  }

  #append(data: JsonObject, step: StepDraft): void {
    const block = this.#block(data);
    const delta = objectAt(data.delta, "delta");
    const text = deltaTexts.get(String(delta.type));
    if (block.stopped) throw invalid("index", "that of a block that has not stopped");
    if (delta.type === "citations_delta") block.citations.push(delta.citation ?? null);
    step.addOwn(delta.type, "/delta/type");
    if (text !== undefined && typeof delta[text.key] !== "string") throw invalid(`delta.${text.key}`, "a string");
    step.addOthers(delta, new Set(["type", ...(text === undefined ? [] : [text.key])]), "/delta");
    this.#appendTexts(data, data.index as number, step);
  }

  #appendTexts(data: JsonObject, index: number, step: StepDraft): void {
    const { texts } = this.#block(data);
    for (const { holder, key, part } of messagesTextSites(data)) {
      const text = holder[key] as string;
      step.addPiece(`/content/${index}/${part}`, text);
      texts.set(part, (texts.get(part) ?? "") + text);
    }
  }

  #stopBlock(data: JsonObject, step: StepDraft): void {
    const block = this.#block(data);
    block.stopped = true;
    for (const part of block.texts.keys()) step.addFinished(`/content/${data.index}/${part}`);
  }

  #block(data: JsonObject): Block {
    const block = this.#blocks.get(indexAt(data.index, "index", maxBlocks));
    if (block === undefined) throw invalid("index", "that of a block that has begun");
    return block;
  }

  #change(data: JsonObject, step: StepDraft): void {
    const delta = objectAt(data.delta, "delta");
    this.#head = { ...this.#head, ...delta };
    step.addOwn(delta.stop_reason, "/delta/stop_reason");
    step.addOthers(delta, new Set(["stop_reason"]), "/delta");
    this.#count(data.usage, step);
  }

  /** Counts cover the whole response, so the latest of each replaces the former. */
  #count(usage: Json | undefined, step: StepDraft): void {
    if (usage === undefined || usage === null) return;
    const counted = Object.entries(objectAt(usage, "usage")).filter(([, value]) => value !== null);
    this.#usage = { ...this.#usage, ...Object.fromEntries(counted) };
    step.addOwn(usage, "/usage");
    step.count(readUsage("messages", { usage: this.#usage }));
  }
}

/** Returns a block so far. The input of a tool is a text until it is complete and can be parsed. */
function contentOf({ start, texts, citations, stopped }: Block): JsonObject {
  const { input, ...members } = Object.fromEntries(texts);
  return {
    ...start,
    ...members,
    ...(citations.length === 0 ? {} : { citations }),
    ...(input === undefined ? {} : { input: stopped ? readInput(input) : input }),
  };
}

function readInput(text: string): Json {
  try {
    const value = parseStrictJson(text, inputBounds);
    return isJsonObject(value) ? value : text;
  } catch {
    return text; // unfinished, or no JSON: judged and shown as text
  }
}

/** The text member of each kind of delta, and the member of its block that it extends. */
const deltaTexts: ReadonlyMap<string, { readonly key: string; readonly part: string }> = new Map([
  ["text_delta", { key: "text", part: "text" }],
  ["input_json_delta", { key: "partial_json", part: "input" }],
  ["thinking_delta", { key: "thinking", part: "thinking" }],
  ["signature_delta", { key: "signature", part: "signature" }],
]);

/** The text members of a new block, by the block's type. */
const blockTexts: ReadonlyMap<string, readonly string[]> = new Map([
  ["text", ["text"]],
  ["thinking", ["thinking", "signature"]],
]);

interface MessagesTextSite extends TextSite {
  /** The member of the block. */
  readonly part: string;
}

/** Lists the members of an event of the messages API that hold text, in block starts and deltas. */
export function messagesTextSites(data: JsonObject): readonly MessagesTextSite[] {
  return sitesOf(data).filter(({ holder, key }) => isText(holder[key]));
}

function sitesOf(data: JsonObject): readonly MessagesTextSite[] {
  if (data.type === "content_block_start") {
    const block = objectAt(data.content_block, "content_block");
    return (blockTexts.get(String(block.type)) ?? []).map((key) => ({ holder: block, key, part: key }));
  }
  if (data.type !== "content_block_delta") return [];
  const delta = objectAt(data.delta, "delta");
  const text = deltaTexts.get(String(delta.type));
  return text === undefined ? [] : [{ holder: delta, ...text }];
}
