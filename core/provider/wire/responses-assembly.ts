import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { WireEvent } from "./event-reader.ts";
import { padding } from "./repeated.ts";
import {
  isItemEvent,
  isResponseEvent,
  itemIndex,
  itemTexts,
  maxParts,
  memberRead,
  responsesTexts,
  textMember,
  textPlace,
} from "./responses-text.ts";
import { indexAt, invalid, objectAt, objectsAt, type StepDraft } from "./stream-step.ts";
import { readUsage } from "./usage.ts";

const names = (text: string): ReadonlySet<string> => new Set(text.split(" "));

const knownInEvent = names(
  "type sequence_number item_id output_index content_index summary_index annotation_index delta text refusal " +
    "arguments input code name part item response logprobs obfuscation annotation",
);
const structure = names("delta text refusal arguments input code part item response");
const knownInItem = names(
  "id type role status content summary arguments input code call_id name phase namespace encrypted_content caller",
);
/** Members of an item that a model writes. */
const spokenInItem = names("content summary arguments input code name");
const knownInPart = names("type text refusal annotations logprobs");
const knownInResponse = names(
  "id object created_at completed_at status background error incomplete_details instructions max_output_tokens " +
    "max_tool_calls model output parallel_tool_calls previous_response_id conversation prompt " +
    "prompt_cache_key prompt_cache_retention reasoning safety_identifier service_tier store temperature text " +
    "tool_choice tools top_logprobs top_p truncation usage user metadata frequency_penalty presence_penalty",
);
/** Members that a response repeats of its request. */
const echoed = ["instructions", "metadata", "prompt", "prompt_cache_key", "reasoning", "safety_identifier"] as const;
const echoes = [...echoed, "text", "tool_choice", "tools", "user"] as const;
const shownHead = ["id", "object", "created_at", "model", "status", "incomplete_details", "usage", "error"] as const;

const plainText = /^[\w.:/@+-]{0,256}$/;

/** A replaced part of a text, in code units of what the provider sent. */
interface Replacement {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** The texts of one event: those that it adds, each where its text ended before, and those that it repeats. */
interface EventTexts {
  readonly added: readonly { readonly pointer: string; readonly from: number; readonly length: number }[];
  readonly repeated: readonly string[];
}

/**
 * Assembles the response from the events of a responses stream. The API says each text several times: in its deltas, at the end
 * of each part and item, and in the last event. Only the first is read as a text; one that is repeated otherwise is refused,
 * and what policy replaces is replaced wherever it is repeated.
 */
export class ResponsesAssembly {
  #head: JsonObject = {};
  readonly #items: JsonObject[] = [];
  readonly #texts = new Map<string, string>();
  readonly #parts = new Map<string, JsonObject>();
  readonly #replaced = new Map<string, Replacement[]>();
  readonly #textsOf = new WeakMap<WireEvent, EventTexts>();
  /** Every text and name of the judged request. */
  readonly #judged = new Set<string>();
  /** Members that were reported before, with their names. */
  readonly #reported = new Set<string>();

  /** `request`: as it was judged; what a response repeats of it is no text of the model. */
  constructor(request: JsonObject = {}) {
    collectTexts(request, this.#judged);
  }

  add(event: WireEvent, data: JsonObject, step: StepDraft): void {
    const type = String(data.type);
    if (event.event !== undefined && event.event !== type) throw invalid("type", "the name of the event");
    this.#open(data, type, step);
    const places = responsesTexts(data);
    const added: { pointer: string; from: number; length: number }[] = [];
    const repeated: string[] = [];
    for (const place of places) {
      const text = place.holder[place.key] as string;
      const known = this.#texts.get(place.pointer) ?? "";
      if (!place.isDelta && known === text) repeated.push(place.pointer);
      else if (!place.isDelta && known !== "") throw invalid(place.key, "what its deltas add up to");
      else {
        added.push({ pointer: place.pointer, from: known.length, length: text.length });
        this.#texts.set(place.pointer, known + text);
        step.addPiece(place.pointer, text);
      }
      if (!place.isDelta) step.addFinished(place.pointer);
    }
    this.#textsOf.set(event, { added, repeated });
    this.#report(data, type, step);
    this.#close(data, type, step);
  }

  /** The response so far. */
  body(): JsonObject {
    return { ...this.#head, output: this.#items.map((item, index) => this.#itemOf(item, `/output/${index}`)) };
  }

  /** True if an event repeats a text of which policy replaced a part. */
  isStale(event: WireEvent): boolean {
    const { repeated = [] } = this.#textsOf.get(event) ?? {};
    return repeated.some((pointer) => this.#replaced.has(pointer));
  }

  /** Writes other texts into the data of an event: `texts` for those that it adds, in their order. */
  rewrite(event: WireEvent, data: JsonObject, texts: readonly string[]): void {
    const { added } = this.#textsOf.get(event) ?? { added: [] };
    if (added.length !== texts.length) throw new TypeError(`rewrite: expected ${added.length} texts`);
    added.forEach(({ pointer, from, length }, index) => {
      const text = texts[index] as string;
      const known = this.#texts.get(pointer) as string;
      if (text !== known.slice(from, from + length)) this.#replace(pointer, { from, to: from + length, text });
    });
    let next = 0;
    for (const { holder, key, pointer, isDelta } of responsesTexts(data)) {
      const isAdded = isDelta || added[next]?.pointer === pointer;
      const written = isAdded ? (texts[next++] as string) : this.#rewritten(pointer, holder[key] as string);
      if (written === holder[key]) continue;
      // The object was parsed for this call only. Tokens would repeat what was replaced.
      const target = holder as Record<string, Json>;
      target[key] = written;
      if (Array.isArray(target.logprobs)) target.logprobs = [];
    }
  }

  #replace(pointer: string, replacement: Replacement): void {
    const known = this.#replaced.get(pointer);
    if (known === undefined) this.#replaced.set(pointer, [replacement]);
    else known.push(replacement);
  }

  #rewritten(pointer: string, text: string): string {
    const replaced = this.#replaced.get(pointer) ?? [];
    return replaced
      .toSorted((a, b) => b.from - a.from)
      .reduce((left, { from, to, text: other }) => left.slice(0, from) + other + left.slice(to), text);
  }

  /** Takes in the items and parts that an event begins. Throws PROVIDER_INVALID for one that skips or repeats a place. */
  #open(data: JsonObject, type: string, step: StepDraft): void {
    if (type === "response.output_item.added" || type === "response.output_item.done") {
      const index = indexAt(data.output_index, "output_index", maxParts);
      this.#put(objectAt(data.item, "item"), index, type.endsWith("added"), step);
    } else if (isResponseEvent(type)) {
      const output = objectsAt(objectAt(data.response, "response").output, "response.output");
      for (const [index, item] of output.entries()) this.#put(item, index, false, step);
    } else if (/^response\.(?:content|reasoning)_part\.added$/.test(type)) this.#putPart(data, "content");
    else if (type === "response.reasoning_summary_part.added") this.#putPart(data, "summary");
  }

  #put(item: JsonObject, index: number, isNew: boolean, step: StepDraft): void {
    const known = this.#items[index];
    if (index > this.#items.length || (isNew && known !== undefined)) throw invalid("output_index", "the next one");
    if (known !== undefined && known.type !== item.type) throw invalid("item.type", "that of the item that began");
    if (item.type !== "message" && item.type !== "reasoning") step.addCall();
    this.#items[index] = item;
    for (const list of ["content", "summary"] as const) {
      if (!Array.isArray(item[list])) continue;
      objectsAt(item[list], `item.${list}`).forEach((part, place) => {
        indexAt(place, `item.${list}`, maxParts);
        this.#parts.set(`/output/${index}/${list}/${place}`, part);
      });
    }
  }

  #putPart(data: JsonObject, list: "content" | "summary"): void {
    const index = indexAt(data[`${list}_index`], `${list}_index`, maxParts);
    const item = `/output/${itemIndex(data)}`;
    if (index > 0 && !this.#parts.has(`${item}/${list}/${index - 1}`)) throw invalid(`${list}_index`, "the next one");
    this.#parts.set(`${item}/${list}/${index}`, objectAt(data.part, "part"));
  }

  /** Reports all that reaches the client beside the texts. */
  #report(data: JsonObject, type: string, step: StepDraft): void {
    if (type === "error") return;
    this.#checkPlace(data, type);
    if (!isResponseEvent(type) && !isItemEvent(type)) this.#unknown(data, "", step);
    else this.#reportEvent(data, type, step);
  }

  #reportEvent(data: JsonObject, type: string, step: StepDraft): void {
    step.addOthers(data, knownInEvent, "");
    const read = memberRead(data, type);
    for (const name of knownInEvent) {
      if (structure.has(name)) this.#unknown(name === read ? undefined : data[name], `/${name}`, step);
      else if (name !== padding) this.#own(data[name], `/${name}`, step);
    }
    if (read === "part") this.#reportPart(data.part as JsonObject, "/part", step);
    if (read === "item") this.#reportItem(data.item as JsonObject, "/item", step);
    if (read === "response") this.#reportResponse(data.response as JsonObject, step);
  }

  /** Throws PROVIDER_INVALID for a text of a part or an item that has not begun. */
  #checkPlace(data: JsonObject, type: string): void {
    const place = textPlace(data, type);
    if (place === undefined) return;
    const { owner, isOfPart, part } = place;
    const begun = isOfPart ? this.#parts.get(owner) : this.#items[itemIndex(data)];
    if (begun === undefined) throw invalid("output_index", "that of a part that has begun");
    if (!isOfPart && !itemTexts.get(String(begun.type))?.includes(part)) {
      throw invalid("output_index", "that of an item of this kind");
    }
  }

  #reportPart(part: JsonObject, pointer: string, step: StepDraft): void {
    step.addOthers(part, knownInPart, pointer);
    for (const name of ["type", "annotations", "logprobs"]) this.#own(part[name], `${pointer}/${name}`, step);
    const text = textMember(part);
    for (const name of ["text", "refusal"]) {
      if (name !== text || typeof part[name] !== "string") this.#unknown(part[name], `${pointer}/${name}`, step);
    }
  }

  #reportItem(item: JsonObject, pointer: string, step: StepDraft): void {
    const texts = itemTexts.get(String(item.type));
    const isKnown = texts !== undefined || item.type === "message" || item.type === "reasoning";
    if (!isKnown) {
      this.#unknown(item, pointer, step);
      return;
    }
    step.addOthers(item, knownInItem, pointer);
    for (const name of knownInItem) {
      const value = item[name];
      if ((name === "content" || name === "summary") && Array.isArray(value)) {
        for (const part of objectsAt(value, name)) this.#reportPart(part, `${pointer}/${name}`, step);
      } else if (texts?.includes(name) === true && typeof value === "string") continue;
      else if (spokenInItem.has(name)) this.#unknown(value, `${pointer}/${name}`, step);
      else this.#own(value, `${pointer}/${name}`, step);
    }
  }

  #reportResponse(response: JsonObject, step: StepDraft): void {
    step.addOthers(response, knownInResponse, "/response");
    for (const name of knownInResponse) {
      const value = response[name];
      if (name === "output")
        for (const item of objectsAt(value, name)) this.#reportItem(item, "/response/output", step);
      else if ((echoes as readonly string[]).includes(name)) this.#echo(value, name, step);
      else this.#own(value, `/response/${name}`, step);
    }
  }

  /** Reports what a response repeats of its request, unless it was judged with that. */
  #echo(value: Json | undefined, name: string, step: StepDraft): void {
    const texts = new Set<string>();
    collectTexts(value ?? null, texts);
    if ([...texts].every((text) => plainText.test(text) || this.#judged.has(text))) return;
    this.#unknown(JSON.stringify(value), `/response/${name}`, step);
  }

  /** Reports a value of the provider, once, unless it looks generated. */
  #own(value: Json | undefined, pointer: string, step: StepDraft): void {
    if (value !== undefined && value !== null && this.#isNew(value, pointer)) step.addOwn(value, pointer);
  }

  #unknown(value: Json | undefined, pointer: string, step: StepDraft): void {
    if (value !== undefined && value !== null && this.#isNew(value, pointer)) step.addUnknown(value, pointer);
  }

  /** Events repeat whole items and responses: a value counts once, whatever the event. */
  #isNew(value: Json, pointer: string): boolean {
    if (typeof value === "number" || typeof value === "boolean") return false;
    const key = `${pointer.slice(pointer.lastIndexOf("/"))}\n${JSON.stringify(value)}`;
    if (this.#reported.has(key)) return false;
    this.#reported.add(key);
    return true;
  }

  #close(data: JsonObject, type: string, step: StepDraft): void {
    if (type === "error") {
      const error = data.error ?? { code: data.code ?? null, message: data.message ?? null };
      step.addUnknown(data, "/error");
      step.end(error);
    }
    if (!isResponseEvent(type)) return;
    const response = objectAt(data.response, "response");
    this.#head = Object.fromEntries(
      shownHead.flatMap((name) => (response[name] === undefined ? [] : [[name, response[name] as Json]])),
    );
    if (isJsonObject(response.usage)) step.count(readUsage("responses", response));
    if (type === "response.failed") step.end(response.error ?? null);
    else if (type === "response.completed" || type === "response.incomplete") step.end();
  }

  #itemOf(item: JsonObject, pointer: string): JsonObject {
    const built: Record<string, Json> = { ...item };
    for (const name of itemTexts.get(String(item.type)) ?? []) {
      built[name] = this.#texts.get(`${pointer}/${name}`) ?? item[name] ?? null;
    }
    for (const list of ["content", "summary"] as const) {
      const parts: Json[] = [];
      for (let at = 0; this.#parts.has(`${pointer}/${list}/${at}`); at++) {
        const part = this.#parts.get(`${pointer}/${list}/${at}`) as JsonObject;
        const key = textMember(part);
        parts.push({ ...part, [key]: this.#texts.get(`${pointer}/${list}/${at}/${key}`) ?? "" });
      }
      if (parts.length > 0) built[list] = parts;
    }
    return built;
  }
}

/** Collects every text and every name in a value. */
function collectTexts(value: Json, texts: Set<string>): void {
  if (typeof value === "string") texts.add(value);
  else if (Array.isArray(value)) for (const item of value) collectTexts(item, texts);
  else if (isJsonObject(value)) {
    for (const [name, member] of Object.entries(value)) {
      texts.add(name);
      collectTexts(member, texts);
    }
  }
}
