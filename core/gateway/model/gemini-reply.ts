import type { GatewayError } from "../../action/error.ts";
import type { JsonObject } from "../../action/json.ts";
import type { WireEvent } from "../../provider/wire/event-reader.ts";
import { toGeminiError } from "../../provider/wire/gemini/error.ts";
import { toGeminiResponse } from "../../provider/wire/gemini/response.ts";
import { toGeminiStream } from "../../provider/wire/gemini/stream.ts";
import { modelErrorBody } from "./error.ts";
import type { ReplyForm, StreamTail } from "./reply.ts";

/** A stream as events, or as the items of one JSON array, which is what a client gets that does not ask for events. */
export type GeminiFraming = "sse" | "array";

/** The Gemini form of one answer that was judged as one of the chat API. */
export class GeminiReply implements ReplyForm {
  readonly #framing: GeminiFraming;
  readonly #showsThoughts: boolean;
  /** Reads the events as they come, `#translateRendered` as policy left them. */
  readonly #translateChecked: (event: WireEvent) => readonly JsonObject[];
  readonly #translateRendered: (event: WireEvent) => readonly JsonObject[];
  #hasItems = false;
  /** The error that was sent as an item. */
  #error: JsonObject | undefined;

  constructor(framing: GeminiFraming, showsThoughts: boolean) {
    this.#framing = framing;
    this.#showsThoughts = showsThoughts;
    this.#translateChecked = toGeminiStream(showsThoughts);
    this.#translateRendered = toGeminiStream(showsThoughts);
  }

  get streamType(): string {
    return this.#framing === "sse" ? "text/event-stream; charset=utf-8" : "application/json; charset=utf-8";
  }

  whole(answer: JsonObject): JsonObject {
    return toGeminiResponse(answer, this.#showsThoughts);
  }

  providerError(status: number, error: JsonObject): JsonObject {
    return toGeminiError(status, error);
  }

  check(event: WireEvent): void {
    this.#translateChecked(event);
  }

  render(events: readonly WireEvent[]): Uint8Array {
    const items = events.flatMap((event) => this.#translateRendered(event));
    return Buffer.from(items.map((item) => this.#frame(item)).join(""));
  }

  end(): StreamTail {
    return this.#tail("");
  }

  errorEnd(error: GatewayError, requestId: string): StreamTail {
    return this.#tail(this.#frame(modelErrorBody("gemini", error, requestId)));
  }

  /**
   * The tail of a stream after these last bytes. After its event an error stands once more without a frame, as Google's
   * servers send it: its clients look for it there, others skip what no blank line ends.
   */
  #tail(bytes: string): StreamTail {
    if (this.#framing === "array") return [Buffer.from(`${bytes}]`)];
    if (this.#error === undefined) return [Buffer.from(bytes)];
    return [Buffer.from(bytes), Buffer.from(JSON.stringify(this.#error))];
  }

  #frame(item: JsonObject): string {
    const text = JSON.stringify(item);
    if (item.error !== undefined) this.#error = item;
    if (this.#framing === "sse") return `data: ${text}\n\n`;
    const start = this.#hasItems ? ",\n" : "[";
    this.#hasItems = true;
    return start + text;
  }
}
