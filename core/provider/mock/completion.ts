import { sha256Hex } from "../../action/canonical-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { doneData, jsonEvent, textEvent, type WireEvent } from "../wire/event-reader.ts";

/** The mock provider's response to one request, which depends on neither time nor chance. */
interface MockCompletion {
  readonly plan: MockPlan;
  readonly body: JsonObject;
  /** The same response, streamed. */
  readonly events: () => readonly WireEvent[];
}

export function complete(request: JsonObject): MockCompletion {
  const prompt = lastUserText(request.messages);
  const model = typeof request.model === "string" ? request.model : "";
  const plan = readPlan(model, prompt);
  const response = new MockResponse(request, model, plan, prompt);
  return { plan, body: response.body(), events: () => response.events() };
}

/** The numbers of one embedding of the mock provider. */
const dimensions = 8;

/** The mock provider's embeddings: the same numbers for the same input, between -1 and 1. */
export function embed(request: JsonObject): JsonObject {
  const { input, model } = request;
  const inputs: readonly Json[] = Array.isArray(input) && typeof input[0] !== "number" ? input : [input ?? ""];
  const isBase64 = request.encoding_format === "base64";
  const data = inputs.map((each, index) => {
    const hash = sha256Hex(JSON.stringify(each));
    const numbers = Array.from(
      { length: dimensions },
      (_, at) => Number.parseInt(hash.slice(at * 2, at * 2 + 2), 16) / 128 - 1,
    );
    const embedding = isBase64 ? Buffer.from(new Float32Array(numbers).buffer).toString("base64") : numbers;
    return { object: "embedding", index, embedding };
  });
  const tokens = tokensOf(JSON.stringify(input ?? ""));
  return { object: "list", data, model: model ?? "", usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

/** The error body for a request with the directive `fail`. */
export function errorOf(status: number): JsonObject {
  const type = status < 500 ? "invalid_request_error" : "server_error";
  return { error: { message: `told to answer ${status}`, type, param: null, code: null } };
}

class MockResponse {
  readonly #request: JsonObject;
  readonly #model: string;
  readonly #plan: MockPlan;
  readonly #text: string | null;

  constructor(request: JsonObject, model: string, plan: MockPlan, prompt: string) {
    this.#request = request;
    this.#model = model;
    this.#plan = plan;
    this.#text = plan.text ?? (plan.calls.length > 0 ? null : `You said: ${prompt}`);
  }

  body(): JsonObject {
    const calls = this.#calls();
    const message = { role: "assistant", content: this.#text, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
    return {
      ...this.#head("chat.completion"),
      choices: [{ index: 0, message, logprobs: null, finish_reason: this.#finish }],
      usage: this.#usage(),
    };
  }

  events(): readonly WireEvent[] {
    const head = this.#head("chat.completion.chunk");
    const chunk = (delta: JsonObject, finish: string | null = null): WireEvent =>
      jsonEvent("chat", { ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] });
    const text = pieces(this.#text ?? "", this.#plan.pieceLength).map((content) => chunk({ content }));
    const calls = this.#calls().flatMap((call, index) => this.#callEvents(call, index).map((delta) => chunk(delta)));
    const { stream_options: options } = this.#request;
    const counted = isJsonObject(options) && options.include_usage === true;
    return [
      chunk({ role: "assistant", content: this.#text === null ? null : "" }),
      ...text,
      ...calls,
      chunk({}, this.#finish),
      ...(counted ? [jsonEvent("chat", { ...head, choices: [], usage: this.#usage() })] : []),
      textEvent(doneData),
    ];
  }

  get #finish(): string {
    return this.#plan.calls.length > 0 ? "tool_calls" : "stop";
  }

  #head(object: string): JsonObject {
    const id = sha256Hex(JSON.stringify(this.#request)).slice(0, 24);
    return { id: `chatcmpl-${id}`, object, created: 0, model: this.#model };
  }

  #calls(): readonly ToolCall[] {
    return this.#plan.calls.map((call, index) => ({
      id: `call_${index}`,
      type: "function",
      function: { name: call.name, arguments: JSON.stringify(call.arguments) },
    }));
  }

  #callEvents(call: ToolCall, index: number): readonly JsonObject[] {
    const { name, arguments: json } = call.function;
    const begin = { index, id: call.id, type: call.type, function: { name, arguments: "" } };
    const rest = pieces(json, this.#plan.pieceLength).map((piece) => ({ index, function: { arguments: piece } }));
    return [begin, ...rest].map((delta) => ({ tool_calls: [delta] }));
  }

  /** Four bytes count as one token. */
  #usage(): JsonObject {
    const prompt = tokensOf(JSON.stringify(this.#request.messages ?? null));
    const completion = tokensOf(
      (this.#text ?? "") +
        this.#calls()
          .map((call) => call.function.arguments)
          .join(""),
    );
    return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  }
}

interface ToolCall extends JsonObject {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

function tokensOf(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

/** Splits a text into pieces, never between the halves of a character. */
function pieces(text: string, length: number): readonly string[] {
  const all: string[] = [];
  for (let at = 0; at < text.length; ) {
    const end = /[\ud800-\udbff]/.test(text.charAt(at + length - 1)) ? at + length + 1 : at + length;
    all.push(text.slice(at, end));
    at = end;
  }
  return all;
}

/** The text of the user's last message, its parts one to a line. */
function lastUserText(messages: Json | undefined): string {
  const list: readonly Json[] = Array.isArray(messages) ? messages : [];
  const content = list.filter(isJsonObject).findLast(({ role }) => role === "user")?.content;
  if (typeof content === "string") return content;
  const parts: readonly Json[] = Array.isArray(content) ? content : [];
  return parts
    .filter(isJsonObject)
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("\n");
}

/** The directives of a request to the mock provider. */
interface MockPlan {
  /** Null: an echo of the user's last message. */
  readonly text: string | null;
  readonly calls: readonly { readonly name: string; readonly arguments: JsonObject }[];
  /** Null: the request succeeds. */
  readonly failure: { readonly status: number; readonly retryAfter: string | null } | null;
  /** Before the first byte, and between two pieces of a stream. */
  readonly stallMs: number;
  readonly pauseMs: number;
  /** The number of events after which the connection breaks; null for a complete stream. */
  readonly diesAfter: number | null;
  /** UTF-16 code units of one piece of a stream. */
  readonly pieceLength: number;
}

const defaultPlan: MockPlan = {
  text: null,
  calls: [],
  failure: null,
  stallMs: 0,
  pauseMs: 0,
  diesAfter: null,
  pieceLength: 16,
};

const maxWaitMs = 600_000;
const maxDirectives = 1_000;

/** One line of a message, or a model's whole name. `=` stands for a space where a name cannot have one. */
const directive = /^mock:([a-z]+)(?:[ =](.+))?$/gm;

const verbs: Readonly<Record<string, (plan: MockPlan, words: string) => Partial<MockPlan> | undefined>> = {
  say: (plan, words) => ({ text: (plan.text ?? "") + (readText(words) ?? words) }),
  call: ({ calls }, words) => {
    const [, name = "", json = "{}"] = /^(\S+)(?: (.+))?$/.exec(words) ?? [];
    const given = readJson(json);
    return name === "" || !isJsonObject(given) ? undefined : { calls: [...calls, { name, arguments: given }] };
  },
  fail: (_, words) => {
    const [, status, retryAfter = null] = /^([3-5]\d\d)(?:[ ,]([\x21-\x7e]{1,64}))?$/.exec(words) ?? [];
    return status === undefined ? undefined : { failure: { status: Number(status), retryAfter } };
  },
  stall: (_, words) => whole(words, maxWaitMs, (stallMs) => ({ stallMs })),
  pause: (_, words) => whole(words, maxWaitMs, (pauseMs) => ({ pauseMs })),
  die: (_, words) => whole(words, 100_000, (diesAfter) => ({ diesAfter })),
  pieces: (_, words) => whole(words, 100_000, (length) => ({ pieceLength: Math.max(1, length) })),
};

/** Reads the directives in a model's name and in the text of a message; ignores other lines. */
function readPlan(model: string, text: string): MockPlan {
  let plan = defaultPlan;
  let read = 0;
  for (const [, verb = "", words = ""] of `${model}\n${text}`.matchAll(directive)) {
    if (read++ >= maxDirectives) break;
    if (Object.hasOwn(verbs, verb)) plan = { ...plan, ...verbs[verb]?.(plan, words) };
  }
  return plan;
}

/** A JSON string may hold what a line cannot. */
function readText(words: string): string | undefined {
  const value = words.startsWith('"') ? readJson(words) : undefined;
  return typeof value === "string" ? value : undefined;
}

function readJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function whole(words: string, most: number, make: (value: number) => Partial<MockPlan>): Partial<MockPlan> | undefined {
  return /^\d{1,6}$/.test(words) && Number(words) <= most ? make(Number(words)) : undefined;
}
