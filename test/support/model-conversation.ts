import fc from "fast-check";
import type { Json, JsonObject } from "../../core/action/json.ts";

/** A conversation in the words of neither API, which the two renderers write in both. */
export interface Conversation {
  readonly system: readonly string[];
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly choice: "auto" | "any" | "none" | "named" | undefined;
  readonly parallel: boolean;
  readonly maxTokens: number;
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly stops: readonly string[];
  readonly stream: boolean | undefined;
  readonly user: string | undefined;
}

interface Tool {
  readonly name: string;
  readonly description: string | undefined;
  readonly schema: JsonObject;
  readonly strict: boolean | undefined;
}

type Turn =
  | { readonly kind: "user"; readonly parts: readonly Part[] }
  | { readonly kind: "assistant"; readonly text: string | undefined; readonly calls: readonly Call[] }
  | { readonly kind: "results"; readonly results: readonly { readonly id: string; readonly text: string }[] };

type Part =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "address"; readonly url: string }
  | { readonly kind: "data"; readonly type: string; readonly data: string };

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
}

const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 });
const name = fc.stringMatching(/^[a-z][a-z0-9_-]{0,12}$/);
const id = fc.stringMatching(/^[a-zA-Z0-9_]{4,20}$/).map((suffix) => `call_${suffix}`);
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined });

/** JSON objects with all that strict reading lets through, names like `__proto__` included. */
const jsonObject: fc.Arbitrary<JsonObject> = fc
  .dictionary(
    fc.oneof(fc.constantFrom("__proto__", "constructor", "prototype", "type", "text"), text),
    fc.oneof(
      text,
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(fc.oneof(text, fc.integer()), { maxLength: 3 }),
    ),
    { maxKeys: 4, noNullPrototype: true },
  )
  .map((value) => JSON.parse(JSON.stringify(value).replaceAll("\\u0000", "")) as JsonObject);

export const call: fc.Arbitrary<Call> = fc.record({ id, name, input: jsonObject });

const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ kind: fc.constant("text" as const), text }),
  fc.record({ kind: fc.constant("address" as const), url: fc.webUrl({ validSchemes: ["https"] }) }),
  fc.record({
    kind: fc.constant("data" as const),
    type: fc.constantFrom("image/png", "image/jpeg"),
    data: fc.base64String({ minLength: 4, maxLength: 40 }),
  }),
);

const turn: fc.Arbitrary<Turn> = fc.oneof(
  fc.record({ kind: fc.constant("user" as const), parts: fc.array(part, { minLength: 1, maxLength: 3 }) }),
  fc.record({ kind: fc.constant("assistant" as const), text: maybe(text), calls: fc.array(call, { maxLength: 3 }) }),
  fc.record({
    kind: fc.constant("results" as const),
    results: fc.array(fc.record({ id, text }), { minLength: 1, maxLength: 3 }),
  }),
);

export const conversation: fc.Arbitrary<Conversation> = fc
  .record({
    system: fc.array(text, { maxLength: 2 }),
    turns: fc.array(turn, { minLength: 1, maxLength: 6 }),
    tools: fc.array(fc.record({ name, description: maybe(text), schema: jsonObject, strict: maybe(fc.boolean()) }), {
      maxLength: 3,
    }),
    choice: fc.constantFrom("auto" as const, "any" as const, "none" as const, "named" as const, undefined),
    parallel: fc.boolean(),
    maxTokens: fc.integer({ min: 1, max: 100_000 }),
    temperature: maybe(fc.constantFrom(0, 0.25, 0.7, 1)),
    topP: maybe(fc.constantFrom(0.1, 0.95, 1)),
    stops: fc.array(text, { maxLength: 4 }),
    stream: maybe(fc.boolean()),
    user: maybe(text),
  })
  .map((drawn) => ({ ...drawn, turns: spoken(drawn.turns) }));

/** Results and what the user says next are one turn in one of the APIs: keep them apart, and silent turns away. */
function spoken(turns: readonly Turn[]): readonly Turn[] {
  const kept: Turn[] = [];
  for (const turn of turns) {
    if (turn.kind === "assistant" && turn.text === undefined && turn.calls.length === 0) continue;
    if (kept.at(-1)?.kind !== "results" || turn.kind === "assistant") kept.push(turn);
  }
  return kept.length === 0 ? [{ kind: "user", parts: [{ kind: "text", text: "hello" }] }] : kept;
}

export function chatRequest(c: Conversation): JsonObject {
  const choices: Readonly<Record<string, Json>> = { auto: "auto", any: "required", none: "none" };
  const named = { type: "function", function: { name: "pick" } };
  return {
    model: "the-model",
    max_completion_tokens: c.maxTokens,
    messages: [
      ...(c.system.length === 0 ? [] : [{ role: "system", content: joined(c.system) }]),
      ...c.turns.flatMap(chatMessages),
    ],
    ...(c.temperature === undefined ? {} : { temperature: c.temperature }),
    ...(c.topP === undefined ? {} : { top_p: c.topP }),
    ...(c.stops.length === 0 ? {} : { stop: c.stops }),
    ...(c.tools.length === 0 ? {} : { tools: c.tools.map(chatTool) }),
    ...(c.choice === undefined ? {} : { tool_choice: choices[c.choice] ?? named }),
    ...(isSerial(c) ? { parallel_tool_calls: false } : {}),
    ...(c.user === undefined ? {} : { user: c.user }),
    ...(c.stream === undefined ? {} : { stream: c.stream }),
    ...(c.stream === true ? { stream_options: { include_usage: true } } : {}),
  };
}

/** Calls one after the other can be asked for only where tools are offered, and one may be called. */
function isSerial(c: Conversation): boolean {
  return !c.parallel && c.tools.length > 0 && c.choice !== "none" && c.choice !== undefined;
}

function chatMessages(turn: Turn): readonly JsonObject[] {
  if (turn.kind === "user") return [{ role: "user", content: chatParts(turn.parts) }];
  if (turn.kind === "results") {
    return turn.results.map(({ id, text }) => ({ role: "tool", tool_call_id: id, content: text }));
  }
  const calls = turn.calls.length === 0 ? {} : { tool_calls: turn.calls.map(chatCall) };
  return [{ role: "assistant", content: turn.text ?? null, ...calls }];
}

export function chatCall({ id, name, input }: Call): JsonObject {
  return { id, type: "function", function: { name, arguments: JSON.stringify(input) } };
}

function chatParts(parts: readonly Part[]): Json {
  const [first] = parts;
  if (parts.length === 1 && first?.kind === "text") return first.text;
  return parts.map((part) => {
    if (part.kind === "text") return { type: "text", text: part.text };
    const url = part.kind === "address" ? part.url : `data:${part.type};base64,${part.data}`;
    return { type: "image_url", image_url: { url } };
  });
}

function chatTool({ name, description, schema, strict }: Tool): JsonObject {
  const about = description === undefined ? {} : { description };
  return {
    type: "function",
    function: { name, ...about, parameters: schema, ...(strict === undefined ? {} : { strict }) },
  };
}

export function messagesRequest(c: Conversation): JsonObject {
  const choice =
    c.choice === undefined ? undefined : c.choice === "named" ? { type: "tool", name: "pick" } : { type: c.choice };
  return {
    model: "the-model",
    max_tokens: c.maxTokens,
    ...(c.system.length === 0 ? {} : { system: joined(c.system) }),
    messages: c.turns.map(messagesMessage),
    ...(c.temperature === undefined ? {} : { temperature: c.temperature }),
    ...(c.topP === undefined ? {} : { top_p: c.topP }),
    ...(c.stops.length === 0 ? {} : { stop_sequences: c.stops }),
    ...(c.tools.length === 0 ? {} : { tools: c.tools.map(messagesTool) }),
    ...(choice === undefined
      ? {}
      : { tool_choice: isSerial(c) ? { ...choice, disable_parallel_tool_use: true } : choice }),
    ...(c.user === undefined ? {} : { metadata: { user_id: c.user } }),
    ...(c.stream === undefined ? {} : { stream: c.stream }),
  };
}

function messagesMessage(turn: Turn): JsonObject {
  if (turn.kind === "user") return { role: "user", content: messagesParts(turn.parts) };
  if (turn.kind === "results") {
    const blocks = turn.results.map(({ id, text }) => ({ type: "tool_result", tool_use_id: id, content: text }));
    return { role: "user", content: blocks };
  }
  if (turn.calls.length === 0) return { role: "assistant", content: turn.text ?? "" };
  const said = turn.text === undefined ? [] : [{ type: "text", text: turn.text }];
  return { role: "assistant", content: [...said, ...turn.calls.map(messagesCall)] };
}

export function messagesCall({ id, name, input }: Call): JsonObject {
  return { type: "tool_use", id, name, input };
}

function messagesParts(parts: readonly Part[]): Json {
  const [first] = parts;
  if (parts.length === 1 && first?.kind === "text") return first.text;
  return parts.map((part) => {
    if (part.kind === "text") return { type: "text", text: part.text };
    const source =
      part.kind === "address"
        ? { type: "url", url: part.url }
        : { type: "base64", media_type: part.type, data: part.data };
    return { type: "image", source };
  });
}

function messagesTool({ name, description, schema, strict }: Tool): JsonObject {
  const about = description === undefined ? {} : { description };
  return { name, ...about, input_schema: schema, ...(strict === undefined ? {} : { strict }) };
}

/** What the user says or shows, what the model says and calls, and what became of it, each an item. */
export function responsesRequest(c: Conversation): JsonObject {
  const named = { type: "function", name: "pick" };
  const choices: Readonly<Record<string, Json>> = { auto: "auto", any: "required", none: "none" };
  return {
    model: "the-model",
    input: [
      ...(c.system.length === 0 ? [] : [{ role: "system", content: inputTexts(c.system) }]),
      ...c.turns.flatMap(responsesItems),
    ],
    max_output_tokens: c.maxTokens,
    ...(c.tools.length === 0 ? {} : { tools: c.tools.map(responsesTool) }),
    ...(c.choice === undefined ? {} : { tool_choice: choices[c.choice] ?? named }),
    ...(isSerial(c) ? { parallel_tool_calls: false } : {}),
    store: false,
    ...(c.temperature === undefined ? {} : { temperature: c.temperature }),
    ...(c.topP === undefined ? {} : { top_p: c.topP }),
    ...(c.user === undefined ? {} : { user: c.user }),
    ...(c.stream === undefined ? {} : { stream: c.stream }),
  };
}

function inputTexts(texts: readonly string[]): Json {
  return texts.length === 1 ? (texts[0] as string) : texts.map((text) => ({ type: "input_text", text }));
}

function responsesItems(turn: Turn): readonly JsonObject[] {
  if (turn.kind === "user") return [{ role: "user", content: responsesParts(turn.parts) }];
  if (turn.kind === "results") {
    return turn.results.map(({ id, text }) => ({ type: "function_call_output", call_id: id, output: text }));
  }
  const text = { type: "output_text", text: turn.text ?? "", annotations: [] };
  return [
    ...(turn.text === undefined ? [] : [{ type: "message", role: "assistant", content: [text] }]),
    ...turn.calls.map(({ id, name, input }) => ({
      type: "function_call",
      call_id: id,
      name,
      arguments: JSON.stringify(input),
    })),
  ];
}

function responsesParts(parts: readonly Part[]): Json {
  const [first] = parts;
  if (parts.length === 1 && first?.kind === "text") return first.text;
  return parts.map((part) => {
    if (part.kind === "text") return { type: "input_text", text: part.text };
    const url = part.kind === "address" ? part.url : `data:${part.type};base64,${part.data}`;
    return { type: "input_image", image_url: url, detail: "auto" };
  });
}

function responsesTool({ name, description, schema, strict }: Tool): JsonObject {
  const about = description === undefined ? {} : { description };
  return { type: "function", name, ...about, parameters: schema, strict: strict ?? false };
}

function joined(texts: readonly string[]): Json {
  return texts.length === 1 ? (texts[0] as string) : texts.map((text) => ({ type: "text", text }));
}
