import type { ModelWorld } from "./world.ts";

/** What a Gemini request of a test says; the rest is as usual. */
export interface GeminiAsked {
  readonly model?: string;
  readonly text?: string;
  /** As events, or as a JSON array; undefined: whole. */
  readonly stream?: "sse" | "array";
  /** Members beside or in place of `contents`. */
  readonly body?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly version?: "v1" | "v1beta";
}

export interface GeminiPart {
  readonly text?: string;
  readonly thought?: boolean;
  readonly functionCall?: { readonly id: string; readonly name: string; readonly args: unknown };
}

interface Item {
  readonly candidates?: readonly {
    readonly content: { readonly role: string; readonly parts: readonly GeminiPart[] };
    readonly finishReason?: string;
  }[];
  readonly usageMetadata?: unknown;
  readonly error?: GeminiError;
}

export interface GeminiError {
  readonly code: number;
  readonly message: string;
  readonly status: string;
  readonly details?: readonly Readonly<Record<string, unknown>>[];
}

/** An answer as it came over the wire. */
export interface GeminiTold {
  readonly status: number;
  readonly headers: Headers;
  readonly raw: string;
  /** The answer, or the responses of a stream. */
  readonly items: readonly Item[];
  readonly text: string;
  readonly calls: readonly GeminiPart["functionCall"][];
  readonly finish: string | undefined;
  readonly usage: unknown;
  readonly error: GeminiError | undefined;
}

/** Sends a Gemini request with the agent's key, to be read as it comes. */
export function openGemini(world: ModelWorld, asked: GeminiAsked = {}): Promise<Response> {
  const { model = "chat-model", text = "hello", stream, version = "v1beta" } = asked;
  const method = stream === undefined ? "generateContent" : "streamGenerateContent";
  const query = stream === "sse" ? "?alt=sse" : "";
  return fetch(`${world.gateway.url}/${version}/models/${model}:${method}${query}`, {
    method: "POST",
    headers: { "x-goog-api-key": world.keys.agent, "content-type": "application/json", ...asked.headers },
    body: JSON.stringify({ contents: [{ role: "user", parts: [{ text }] }], ...asked.body }),
    signal: asked.signal ?? null,
  });
}

export async function askGemini(world: ModelWorld, asked: GeminiAsked = {}): Promise<GeminiTold> {
  return readGemini(await openGemini(world, asked));
}

/** Reads an answer in whatever form it comes, as clients do. */
export async function readGemini(response: Response): Promise<GeminiTold> {
  const { status, headers } = response;
  const raw = await response.text();
  const items = itemsOf(headers.get("content-type") ?? "", raw);
  const candidates = items.flatMap((item) => item.candidates ?? []);
  const parts = candidates.flatMap(({ content }) => content.parts);
  return {
    status,
    headers,
    raw,
    items,
    text: parts.map((part) => part.text ?? "").join(""),
    calls: parts.flatMap(({ functionCall }) => functionCall ?? []),
    finish: candidates.at(-1)?.finishReason,
    usage: items.at(-1)?.usageMetadata,
    error: items.at(-1)?.error,
  };
}

function itemsOf(type: string, raw: string): readonly Item[] {
  if (type.startsWith("text/event-stream")) {
    // What no blank line ends is no event.
    return raw
      .split("\n\n")
      .slice(0, -1)
      .map((event) => JSON.parse(event.replace(/^data: /, "")) as Item);
  }
  const body = JSON.parse(raw) as Item | readonly Item[];
  return Array.isArray(body) ? (body as readonly Item[]) : [body as Item];
}

/** Our own code in an error. */
export function codeOf(error: GeminiError | undefined): unknown {
  return error?.details?.find((detail) => detail["@type"] === "type.googleapis.com/google.rpc.ErrorInfo")?.reason;
}
