import { GatewayError } from "../../kernel/error.ts";
import type { ModelApi } from "../../kernel/model-api.ts";
import type { AnswerOptions } from "./answer-option.ts";
import type { WireEvent } from "./event.ts";
import { ToChatStream } from "./to-chat/stream.ts";
import { ToMessagesStream } from "./to-messages/stream.ts";

/**
 * Writes the events of a provider's stream in the API that its client speaks; where that is the same one, they are the
 * same events. Throws PROVIDER_INVALID for a stream that its own API does not allow, MODEL_UNTRANSLATABLE for what the
 * client's cannot express; it must not be fed again after that.
 */
export class StreamTranslator {
  readonly #stream: ToChatStream | ToMessagesStream | undefined;

  constructor(from: ModelApi, to: ModelApi, options: AnswerOptions = {}) {
    if (from !== to) this.#stream = to === "messages" ? new ToMessagesStream() : new ToChatStream(options);
  }

  push(event: WireEvent): readonly WireEvent[] {
    if (this.#stream === undefined) return [event];
    if (this.#stream.ended && event.keepAlive !== true) {
      throw new GatewayError("PROVIDER_INVALID", "expected nothing after the end of the stream");
    }
    return this.#stream.ended ? [] : this.#stream.push(event);
  }
}
