import { GatewayError } from "../../action/error.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import { ChatAssembly, chatTextSites, choicesOf } from "./chat-assembly.ts";
import { doneData, eventObject, textEvent, type WireEvent } from "./event-reader.ts";
import { MessagesAssembly, messagesTextSites } from "./messages-assembly.ts";
import { mayHoldRepeats, withoutRepeats } from "./repeated.ts";
import { ResponsesAssembly } from "./responses-assembly.ts";
import { StepDraft, type StreamStep } from "./stream-step.ts";

const defaultMaxText = 8 * 1024 * 1024;

/**
 * Reads one streamed response, event by event, and reports every text in it. Throws PROVIDER_INVALID for an event
 * that two clients could read differently, for a response of more than `maxText` code units, and for anything after the
 * end, but for the mark of the end after an error of the chat API; it must not be used after that.
 */
export class StreamReader {
  readonly #api: ModelApi;
  readonly #assembly: ChatAssembly | MessagesAssembly | ResponsesAssembly;
  readonly #draft: StepDraft;
  readonly #repeating = new WeakSet<WireEvent>();
  #end: "whole" | "error" | undefined;

  /** `request`: as it was judged; a stream of the responses API repeats parts of it. */
  constructor(api: ModelApi, maxText: number = defaultMaxText, request: JsonObject = {}) {
    this.#api = api;
    this.#assembly =
      api === "responses"
        ? new ResponsesAssembly(request)
        : api === "chat"
          ? new ChatAssembly()
          : new MessagesAssembly();
    this.#draft = new StepDraft(maxText);
  }

  read(event: WireEvent): StreamStep {
    this.#draft.addUnknown(event.rest, "/comment");
    if (event.keepAlive !== true) this.#readData(event);
    const step = this.#draft.finish();
    if (step.terminal) this.#end = step.error === undefined ? "whole" : "error";
    return step;
  }

  /** Returns the response so far as a body without streaming; unknown members are omitted. */
  body(): JsonObject {
    return this.#assembly.body();
  }

  /** The memory of a waiting event, in bytes. */
  sizeOf(event: WireEvent): number {
    return event.raw.length;
  }

  /**
   * Returns the event with other texts, one for each of its pieces in their order, without comments and without what spells
   * the texts once more.
   */
  rewrite(event: WireEvent, texts: readonly string[]): WireEvent {
    const parsed = eventObject(event);
    const data = this.#repeating.has(event) ? withoutRepeats(parsed) : parsed;
    if (this.#assembly instanceof ResponsesAssembly) {
      this.#assembly.rewrite(event, data, texts);
      return textEvent(JSON.stringify(data), event.event);
    }
    const sites = this.#api === "chat" ? chatTextSites(choicesOf(data)) : messagesTextSites(data);
    if (sites.length !== texts.length) throw new TypeError(`rewrite: expected ${sites.length} texts`);
    // The object was parsed for this call only; its text members are named above, never by the provider.
    sites.forEach(({ holder, key }, index) => {
      (holder as Record<string, Json>)[key] = texts[index] as string;
    });
    return textEvent(JSON.stringify(data), event.event);
  }

  /** True if an event repeats a text that `rewrite` changed before, or spells one once more. */
  isStale(event: WireEvent): boolean {
    if (this.#repeating.has(event)) return true;
    return this.#assembly instanceof ResponsesAssembly && this.#assembly.isStale(event);
  }

  /** True if clients can use a text only once it is complete, as with a tool call's arguments. */
  isWhole(pointer: string): boolean {
    return /\/(?:arguments|input)$/.test(pointer);
  }

  #readData(event: WireEvent): void {
    const isMark = this.#api === "chat" && event.data === doneData;
    if (this.#end === "whole" || (this.#end === "error" && !isMark)) {
      throw new GatewayError("PROVIDER_INVALID", "expected nothing after the end of the stream");
    }
    if (isMark) {
      this.#draft.addUnknown(event.event, "/event");
      this.#draft.end();
      return;
    }
    const parsed = eventObject(event);
    const data = mayHoldRepeats(event.data) ? withoutRepeats(parsed) : parsed;
    if (data !== parsed) this.#repeating.add(event);
    if (this.#assembly instanceof ResponsesAssembly) {
      this.#assembly.add(event, data, this.#draft);
      return;
    }
    if (this.#api === "chat") this.#draft.addUnknown(event.event, "/event");
    else if (event.event !== data.type) {
      throw new GatewayError("PROVIDER_INVALID", "expected an event named by the `type` of its data");
    }
    this.#assembly.add(data, this.#draft);
  }
}
