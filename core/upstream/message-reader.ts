import { setImmediate } from "node:timers/promises";
import { GatewayError } from "../action/error.ts";
import type { JsonRpcMessage } from "../action/json-rpc.ts";
import { type JsonData, longText } from "../action/strict-json.ts";
import { type ReplyBounds, readReply, readReplyInTurns } from "./transport.ts";

/** A stream of messages that can be held up: after `pause` nothing comes but what it had read already, until `resume`. */
export interface MessageSource {
  pause(): void;
  resume(): void;
}

interface MessageReaderOptions {
  readonly bounds: ReplyBounds;
  readonly source: MessageSource;
  /** Resolves in a later turn of the event loop. Left out: in the next one. */
  readonly pause?: (() => Promise<void>) | undefined;
}

/**
 * Reads the messages of one stream in their order: short ones at once, a long one over several turns, in which its source is
 * paused. So what waits behind a long message is no more than the source had read with its end.
 */
export class MessageReader {
  readonly #options: MessageReaderOptions;
  /** Steps behind the message that is being read; undefined while none is. */
  #waiting: (() => void)[] | undefined;

  constructor(options: MessageReaderOptions) {
    this.#options = options;
  }

  /** Calls `use` with the message, or `refuse` with what is wrong with it: UPSTREAM_INVALID, or what `use` throws. */
  read(data: JsonData, use: (message: JsonRpcMessage) => void, refuse: (error: GatewayError) => void): void {
    this.follow(() => {
      if (data.length >= longText) {
        void this.#readLong(data, use, refuse);
        return;
      }
      try {
        use(readReply(data, this.#options.bounds));
      } catch (error) {
        refuse(GatewayError.from(error));
      }
    });
  }

  /** Takes a step behind all messages that came before: at once where none of them is being read. It must not throw. */
  follow(step: () => void): void {
    if (this.#waiting === undefined) step();
    else this.#waiting.push(step);
  }

  async #readLong(
    data: JsonData,
    use: (message: JsonRpcMessage) => void,
    refuse: (error: GatewayError) => void,
  ): Promise<void> {
    const { bounds, source, pause = setImmediate } = this.#options;
    const waiting: (() => void)[] = [];
    this.#waiting = waiting;
    source.pause();
    try {
      use(await readReplyInTurns(data, bounds, pause));
    } catch (error) {
      refuse(GatewayError.from(error));
    }
    this.#waiting = undefined;
    // The first that is long has the others wait again.
    for (const step of waiting) this.follow(step);
    if (this.#waiting === undefined) source.resume();
  }
}
