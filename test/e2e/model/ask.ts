import type { ModelApi } from "../../../core/action/model-api.ts";
import type { ModelWorld } from "./world.ts";

/** Blocks what asks a model for the forbidden word, and holds what asks for a review. */
export const askingRules = `
  - id: open.not-asked
    title: The word is not said to a model
    decision: block
    severity: high
    risk: 80
    match: { phase: input, protocol: model }
    when: leaves(args).exists(leaf, leaf.text.contains("forbidden"))
    message: the word is not said
  - id: open.ask-first
    title: Somebody is asked first
    decision: review
    severity: low
    risk: 10
    match: { phase: input, protocol: model }
    when: leaves(args).exists(leaf, leaf.text.contains("please review"))
    message: asked for review
`;

/** What a request of a test says; the rest is as usual. */
export interface Asked {
  readonly api?: ModelApi;
  readonly model?: string;
  readonly text?: string;
  readonly stream?: boolean;
  /** Further members of the body. */
  readonly body?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** An answer as it came over the wire. */
export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body of an answer that is JSON. */
  json(): Readonly<Record<string, unknown>> & { readonly error?: Readonly<Record<string, unknown>> };
}

const paths: Readonly<Record<ModelApi, string>> = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  responses: "/v1/responses",
};

/** Sends a model request with the agent's key, without any client's repeats. */
export async function askModel(world: ModelWorld, asked: Asked = {}): Promise<Told> {
  const response = await openModel(world, asked);
  const text = await response.text();
  const { status, headers } = response;
  return { status, headers, text, json: () => JSON.parse(text) as ReturnType<Told["json"]> };
}

/** The same, to be read as it comes. */
export function openModel(world: ModelWorld, asked: Asked = {}): Promise<Response> {
  const { api = "chat", model = `${api}-model`, text = "hello", stream = false } = asked;
  return fetch(world.gateway.url + paths[api], {
    method: "POST",
    headers: { "x-api-key": world.keys.agent, "content-type": "application/json", ...asked.headers },
    body: JSON.stringify({
      model,
      ...(stream ? { stream: true } : {}),
      ...(api === "messages" ? { max_tokens: 100 } : {}),
      ...(api === "responses" ? { input: text } : { messages: [{ role: "user", content: text }] }),
      ...asked.body,
    }),
    signal: asked.signal ?? null,
  });
}
