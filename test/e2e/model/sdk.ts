import Anthropic0 from "anthropic-0";
import Anthropic1 from "anthropic-1";
import OpenAI from "openai";
import type { ModelApi } from "../../../core/action/model-api.ts";

/** What a conversation came to, whatever the client. */
export interface Answered {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly arguments: unknown }[];
  readonly stop: "end" | "tool" | "length" | string;
  readonly usage: { readonly input: number; readonly output: number } | undefined;
}

export interface Question {
  readonly model: string;
  readonly text: string;
  readonly tools?: boolean;
  readonly signal?: AbortSignal;
  /** Hears of each piece of text of a streamed answer. */
  readonly onText?: (text: string) => void;
}

/** An official client of one of the APIs, with its own retries. */
export interface ModelSdk {
  readonly name: string;
  readonly api: ModelApi;
  ask(question: Question): Promise<Answered>;
  stream(question: Question): Promise<Answered>;
}

/** What the clients' typed errors have in common. */
export interface SdkError extends Error {
  readonly status: number;
  readonly requestID: string | null;
  readonly error: { readonly code?: string; readonly message?: string; readonly error?: { readonly code?: string } };
}

const weather = { type: "object", properties: { city: { type: "string" } }, required: ["city"] } as const;
const chatStops: Readonly<Record<string, string>> = { stop: "end", tool_calls: "tool", length: "length" };
const messagesStops: Readonly<Record<string, string>> = { end_turn: "end", tool_use: "tool", max_tokens: "length" };

/** All official clients: the chat one, two generations of the messages one, and the responses one. */
export function modelSdks(
  url: string,
  key: string,
  headers: Readonly<Record<string, string>> = {},
): readonly ModelSdk[] {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, defaultHeaders: headers });
  return [
    openAi(client),
    anthropic("anthropic 0.x", new Anthropic0({ baseURL: url, apiKey: key, defaultHeaders: headers })),
    anthropic(
      "anthropic 1.x",
      new Anthropic1({ baseURL: url, apiKey: key, defaultHeaders: headers }) as unknown as Anthropic0,
    ),
    openAiResponses(client),
  ];
}

function openAiResponses(client: OpenAI): ModelSdk {
  const body = ({ model, text, tools }: Question): OpenAI.Responses.ResponseCreateParamsNonStreaming => ({
    model,
    max_output_tokens: 100,
    input: [{ role: "user", content: text }],
    store: false,
    ...(tools === true
      ? {
          tools: [{ type: "function", name: "weather", parameters: { ...weather, required: ["city"] }, strict: false }],
        }
      : {}),
  });
  const answered = ({ output, output_text: text, status, usage }: OpenAI.Responses.Response): Answered => {
    const calls = output.flatMap((item) =>
      item.type === "function_call" ? [{ name: item.name, arguments: JSON.parse(item.arguments) as unknown }] : [],
    );
    const whole = calls.length > 0 ? "tool" : "end";
    return {
      text,
      calls,
      stop: status === "completed" ? whole : String(status),
      usage: usage === undefined ? undefined : { input: usage.input_tokens, output: usage.output_tokens },
    };
  };
  return {
    name: "openai 6.x responses",
    api: "responses",
    ask: async (question) =>
      answered(await client.responses.create(body(question), { signal: question.signal ?? null })),
    stream: async (question) => {
      const stream = client.responses.stream({ ...body(question), stream: true }, { signal: question.signal ?? null });
      stream.on("response.output_text.delta", ({ delta }) => question.onText?.(delta));
      return answered(await stream.finalResponse());
    },
  };
}

function openAi(client: OpenAI): ModelSdk {
  const body = ({ model, text, tools }: Question): OpenAI.ChatCompletionCreateParamsNonStreaming => ({
    model,
    max_completion_tokens: 100,
    messages: [{ role: "user", content: text }],
    ...(tools === true ? { tools: [{ type: "function", function: { name: "weather", parameters: weather } }] } : {}),
  });
  const answered = ({ choices: [choice], usage }: OpenAI.ChatCompletion): Answered => ({
    text: choice?.message.content ?? "",
    calls: (choice?.message.tool_calls ?? []).map((call) => {
      if (call.type !== "function") throw new Error(`expected a call of a function, got ${call.type}`);
      return { name: call.function.name, arguments: JSON.parse(call.function.arguments) as unknown };
    }),
    stop: chatStops[choice?.finish_reason ?? ""] ?? String(choice?.finish_reason),
    usage: usage === undefined ? undefined : { input: usage.prompt_tokens, output: usage.completion_tokens },
  });
  return {
    name: "openai 6.x",
    api: "chat",
    ask: async (question) =>
      answered(await client.chat.completions.create(body(question), { signal: question.signal ?? null })),
    stream: async (question) => {
      const stream = client.chat.completions.stream(
        { ...body(question), stream: true, stream_options: { include_usage: true } },
        { signal: question.signal ?? null },
      );
      stream.on("content", (text) => question.onText?.(text));
      return answered(await stream.finalChatCompletion());
    },
  };
}

function anthropic(name: string, client: Anthropic0): ModelSdk {
  const body = ({ model, text, tools }: Question): Anthropic0.MessageCreateParamsNonStreaming => ({
    model,
    max_tokens: 100,
    messages: [{ role: "user", content: text }],
    ...(tools === true ? { tools: [{ name: "weather", input_schema: { ...weather, required: ["city"] } }] } : {}),
  });
  const answered = ({ content, stop_reason: stop, usage }: Anthropic0.Message): Answered => ({
    text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    calls: content.flatMap((block) =>
      block.type === "tool_use" ? [{ name: block.name, arguments: block.input }] : [],
    ),
    stop: messagesStops[stop ?? ""] ?? String(stop),
    usage: { input: usage.input_tokens, output: usage.output_tokens },
  });
  return {
    name,
    api: "messages",
    ask: async (question) =>
      answered(await client.messages.create(body(question), { signal: question.signal ?? null })),
    stream: async (question) => {
      const stream = client.messages.stream(body(question), { signal: question.signal ?? null });
      stream.on("text", (text) => question.onText?.(text));
      return answered(await stream.finalMessage());
    },
  };
}
