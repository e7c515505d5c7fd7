import { GatewayError } from "../../action/error.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import { ChatAssembly, chatTextSites, choicesOf } from "./chat-assembly.ts";
import { doneData, eventObject, textEvent, type WireEvent } from "./event-reader.ts";
import { MessagesAssembly, messagesTextSites } from "./messages-assembly.ts";
import { StepDraft, type StreamStep } from "./stream-step.ts";

const defaultMostText = 8 * 1024 * 1024;

/**
 * Reads one streamed answer, event by event, and accounts for every text in it. Throws PROVIDER_INVALID for an event
 * that two clients could read differently, for an answer of more than `maxText` code units, and for anything after the
 * end; it must not be fed again after that.
 */
export class StreamReader {
  readonly #api: ModelApi;
  readonly #assembly: ChatAssembly | MessagesAssembly;
  readonly #draft: StepDraft;
  #ended = false;

  constructor(api: ModelApi, maxText: number = defaultMostText) {
    this.#api = api;
    this.#assembly = api === "chat" ? new ChatAssembly() : new MessagesAssembly();
    this.#draft = new StepDraft(maxText);
  }

  read(event: WireEvent): StreamStep {
    this.#draft.addUnknown(event.rest, "/comment");
    if (event.keepAlive !== true) this.#take(event);
    const step = this.#draft.finish();
    this.#ended ||= step.terminal;
    return step;
  }

  /** The answer so far as one that was not streamed, without the members that are not known here. */
  body(): JsonObject {
    return this.#assembly.body();
  }

  /** Bytes that an event takes while it waits. */
  sizeOf(event: WireEvent): number {
    return event.raw.length;
  }

  /** The same event with other texts: one for each of its pieces, in their order. Comments stay behind. */
  rewrite(event: WireEvent, texts: readonly string[]): WireEvent {
    const data = eventObject(event);
    const sites = this.#api === "chat" ? chatTextSites(choicesOf(data)) : messagesTextSites(data);
    if (sites.length !== texts.length) throw new TypeError(`rewrite: expected ${sites.length} texts`);
    // The object was parsed here, for nobody else; its text members are named above, never by the provider.
    sites.forEach(({ holder, key }, index) => {
      (holder as Record<string, Json>)[key] = texts[index] as string;
    });
    return textEvent(JSON.stringify(data), event.event);
  }

  /** Whether a text is of use to the client only once it is whole, as a tool call's arguments are. */
  isWhole(pointer: string): boolean {
    return /\/(?:arguments|input)$/.test(pointer);
  }

  #take(event: WireEvent): void {
    if (this.#ended) throw new GatewayError("PROVIDER_INVALID", "expected nothing after the end of the stream");
    if (this.#api === "chat" && event.data === doneData) {
      this.#draft.addUnknown(event.event, "/event");
      this.#draft.end();
      return;
    }
    const data = eventObject(event);
    if (this.#api === "chat") this.#draft.addUnknown(event.event, "/event");
    else if (event.event !== data.type) {
      throw new GatewayError("PROVIDER_INVALID", "expected an event named by the `type` of its data");
    }
    this.#assembly.take(data, this.#draft);
  }
}
