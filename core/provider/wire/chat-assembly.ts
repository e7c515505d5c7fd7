import { isGiven, isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { padding } from "./repeated.ts";
import { indexAt, invalid, isText, objectAt, objectsAt, type StepDraft, type TextSite } from "./stream-step.ts";
import { readUsage } from "./usage.ts";

/** Maximum choices of one response, and tool calls in one choice. */
const maxParts = 128;

/** One choice of a chunk. */
interface ChoiceDelta {
  readonly index: number;
  readonly choice: JsonObject;
  readonly delta: JsonObject;
  readonly calls: readonly CallDelta[];
}

interface CallDelta {
  readonly index: number;
  readonly call: JsonObject;
  readonly named: JsonObject;
}

/** Reads the choices of a chunk of the chat API. Throws PROVIDER_INVALID where they cannot be distinguished. */
export function choicesOf(chunk: JsonObject): readonly ChoiceDelta[] {
  return objectsAt(chunk.choices, "choices").map((choice) => {
    const delta = objectAt(choice.delta, "choices[].delta");
    return {
      index: indexAt(choice.index, "choices[].index", maxParts),
      choice,
      delta,
      calls: objectsAt(delta.tool_calls, "choices[].delta.tool_calls").map((call, place) => ({
        // Some providers send each call whole, in one chunk, and number none.
        index: indexAt(call.index ?? place, "choices[].delta.tool_calls[].index", maxParts),
        call,
        named: objectAt(call.function, "choices[].delta.tool_calls[].function"),
      })),
    };
  });
}

/** The members of a delta that are text of the message, in reading order. */
const messageTexts = ["reasoning_content", "content", "refusal"] as const;

interface ChatTextSite extends TextSite {
  readonly choice: number;
  /** The tool call that the arguments belong to; -1 for the `function_call` of former API versions. */
  readonly call?: number;
}

/** Lists the members of a chunk that hold text. */
export function chatTextSites(choices: readonly ChoiceDelta[]): readonly ChatTextSite[] {
  return choices
    .flatMap(({ index: choice, delta, calls }): readonly ChatTextSite[] => [
      ...messageTexts.map((key) => ({ holder: delta, key, choice })),
      ...calls.map(({ index, named }) => ({ holder: named, key: "arguments", choice, call: index })),
      { holder: objectAt(delta.function_call, "choices[].delta.function_call"), key: "arguments", choice, call: -1 },
    ])
    .filter(({ holder, key }) => isText(holder[key]));
}

interface Call {
  id: Json;
  type: Json;
  name: Json;
  arguments: string;
}

interface Choice {
  readonly index: number;
  readonly texts: Map<string, string>;
  /** By the provider's index, in the order in which they began. */
  readonly calls: Map<number, Call>;
  finishReason: Json;
  /** True if the model has ended its thinking. */
  hasThought: boolean;
}

const headMembers = ["id", "object", "created", "model", "service_tier", "system_fingerprint"] as const;
const thinking = "reasoning_content";
/** Ratings of the prompt and the response by a provider's filters. */
const filterMembers = ["prompt_filter_results", "content_filter_results"] as const;
const knownInChunk: ReadonlySet<string> = new Set([
  ...headMembers,
  ...filterMembers,
  ...["choices", "usage", "error", padding],
]);
const knownInChoice: ReadonlySet<string> = new Set([...filterMembers, "index", "delta", "finish_reason"]);
const knownInDelta: ReadonlySet<string> = new Set([...messageTexts, "role", "tool_calls", "function_call"]);
const knownInCall: ReadonlySet<string> = new Set(["index", "id", "type", "function"]);
const knownInFunction: ReadonlySet<string> = new Set(["name", "arguments"]);

/** Assembles the response from the chunks of a chat stream. */
export class ChatAssembly {
  readonly #head: Record<string, Json> = {};
  readonly #choices = new Map<number, Choice>();
  #usage: JsonObject | undefined;

  add(chunk: JsonObject, step: StepDraft): void {
    for (const name of headMembers) this.#addOwn(chunk, name, step);
    for (const name of filterMembers) step.addOwn(chunk[name], `/${name}`);
    step.addOthers(chunk, knownInChunk, "");
    this.#count(chunk, step);
    const choices = choicesOf(chunk);
    for (const choice of choices) this.#begin(choice, step);
    for (const site of chatTextSites(choices)) this.#append(site, step);
    if (chunk.error === undefined || chunk.error === null) return;
    step.addUnknown(chunk.error, "/error");
    step.end(chunk.error);
  }

  body(): JsonObject {
    return {
      ...this.#head,
      object: "chat.completion",
      choices: [...this.#choices.values()].map((choice) => ({
        index: choice.index,
        message: messageOf(choice),
        logprobs: null,
        finish_reason: choice.finishReason,
      })),
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
    };
  }

  #addOwn(chunk: JsonObject, name: string, step: StepDraft): void {
    const value = chunk[name];
    if (value === undefined || value === null || value === this.#head[name]) return; // the same in chunk after chunk
    this.#head[name] ??= value;
    step.addOwn(value, `/${name}`);
  }

  #count(chunk: JsonObject, step: StepDraft): void {
    if (chunk.usage === undefined || chunk.usage === null) return;
    this.#usage = objectAt(chunk.usage, "usage");
    step.addOwn(this.#usage, "/usage");
    step.count(readUsage("chat", { usage: this.#usage }));
  }

  #begin({ index, choice, delta, calls }: ChoiceDelta, step: StepDraft): void {
    const known = this.#choice(index);
    known.finishReason = choice.finish_reason ?? known.finishReason;
    step.addOwn(choice.finish_reason, "/choices/finish_reason");
    for (const name of filterMembers) step.addOwn(choice[name], `/choices/${name}`);
    step.addOthers(choice, knownInChoice, "/choices");
    step.addOwn(delta.role, "/choices/delta/role");
    for (const name of messageTexts) {
      if (typeof delta[name] !== "string") step.addUnknown(delta[name], `/choices/delta/${name}`);
    }
    step.addOthers(delta, knownInDelta, "/choices/delta");
    if (calls.length > 0 || isGiven(delta.function_call)) step.addCall();
    for (const call of calls) beginCall(known, call, step);
    if (isJsonObject(delta.function_call)) beginCall(known, { index: -1, call: {}, named: delta.function_call }, step);
  }

  #choice(index: number): Choice {
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = { index, texts: new Map(), calls: new Map(), finishReason: null, hasThought: false };
      this.#choices.set(index, choice);
    }
    return choice;
  }

  #append(site: ChatTextSite, step: StepDraft): void {
    const text = site.holder[site.key] as string;
    const choice = this.#choice(site.choice);
    this.#think(site, choice, step);
    step.addPiece(this.#pointer(site, choice), text);
    const call = site.call === undefined ? undefined : choice.calls.get(site.call);
    if (call === undefined) choice.texts.set(site.key, (choice.texts.get(site.key) ?? "") + text);
    else call.arguments += text;
  }

  /** Ends the thinking at the first other text, which lets a guard release it; more thinking after that is refused. */
  #think({ key }: ChatTextSite, choice: Choice, step: StepDraft): void {
    if (key !== thinking) {
      if (!choice.hasThought && choice.texts.has(thinking)) {
        step.addFinished(this.#pointer({ holder: {}, key: thinking, choice: choice.index }, choice));
      }
      choice.hasThought = true;
    } else if (choice.hasThought) throw invalid(`choices[].delta.${thinking}`, "before all other text");
  }

  #pointer({ key, call }: ChatTextSite, choice: Choice): string {
    const message = `/choices/${[...this.#choices.keys()].indexOf(choice.index)}/message`;
    if (call === undefined) return `${message}/${key}`;
    if (call === -1) return `${message}/function_call/arguments`;
    const place = [...choice.calls.keys()].filter((index) => index !== -1).indexOf(call);
    return `${message}/tool_calls/${place}/function/arguments`;
  }
}

function beginCall(choice: Choice, { index, call, named }: CallDelta, step: StepDraft): void {
  let known = choice.calls.get(index);
  if (known === undefined) {
    known = { id: null, type: "function", name: null, arguments: "" };
    choice.calls.set(index, known);
  } else if (index !== -1 && !isGiven(call.index) && isGiven(call.id) && call.id !== known.id) {
    throw invalid("choices[].delta.tool_calls[].index", "given where calls come in more than one chunk");
  }
  known.id = call.id ?? known.id;
  known.type = call.type ?? known.type;
  // Clients join names, keep the first or take the last.
  if (isText(named.name) && isText(known.name) && named.name !== known.name) {
    throw invalid("choices[].delta.tool_calls[].function.name", "the same in each chunk of a call");
  }
  known.name = isText(named.name) ? named.name : known.name;
  step.addOwn(call.id, "/choices/delta/tool_calls/id");
  step.addOwn(call.type, "/choices/delta/tool_calls/type");
  step.addUnknown(named.name, "/choices/delta/tool_calls/function/name");
  step.addOthers(call, knownInCall, "/choices/delta/tool_calls");
  if (typeof named.arguments !== "string") {
    step.addUnknown(named.arguments, "/choices/delta/tool_calls/function/arguments");
  }
  step.addOthers(named, knownInFunction, "/choices/delta/tool_calls/function");
}

function messageOf({ texts, calls }: Choice): JsonObject {
  const thought = texts.get(thinking);
  const former = calls.get(-1);
  const toolCalls = [...calls].filter(([index]) => index !== -1).map(([, call]) => call);
  return {
    role: "assistant",
    content: texts.get("content") ?? null,
    refusal: texts.get("refusal") ?? null,
    ...(thought === undefined ? {} : { [thinking]: thought }),
    ...(toolCalls.length === 0
      ? {}
      : { tool_calls: toolCalls.map(({ id, type, ...named }) => ({ id, type, function: named })) }),
    ...(former === undefined ? {} : { function_call: { name: former.name, arguments: former.arguments } }),
  };
}
