import { GatewayError } from "../action/error.ts";
import type { Pipe, PipeListener } from "./duplex-transport.ts";
import type { ReplyBounds } from "./flight.ts";
import { EventBody, HttpCall, mediaType, statusError, WholeBody } from "./http-call.ts";
import type { HttpClient } from "./http-client.ts";
import type { SseEvent } from "./sse-reader.ts";

const ignoredBodyBytes = 65_536;
const maxEndpoint = 4_096;

/** The HTTP+SSE transport: one event stream for all answers, and a POST for each message to the address it announced. */
export class SsePipe implements Pipe {
  readonly #client: HttpClient;
  readonly #stream: HttpCall;
  readonly #ready: Promise<string>;
  #announce!: (path: string) => void;
  #refuse!: (error: GatewayError) => void;
  #listener: PipeListener | undefined;
  #announced = false;
  #ended = false;

  constructor(client: HttpClient, bounds: ReplyBounds) {
    this.#client = client;
    this.#ready = new Promise((resolve, reject) => {
      this.#announce = resolve;
      this.#refuse = reject;
    });
    // Whoever writes gets the rejection; without a write there is nobody it concerns.
    this.#ready.catch(() => undefined);
    this.#stream = new HttpCall({
      onResponse: (status, headers) => {
        if (status !== 200) throw statusError(status);
        if (mediaType(headers) !== "text/event-stream") {
          throw new GatewayError("UPSTREAM_INVALID", "expected an event stream");
        }
        return new EventBody(
          bounds.bytes,
          (event) => this.#onEvent(event),
          () => this.#end(new GatewayError("UPSTREAM_UNAVAILABLE", "the upstream closed its event stream")),
        );
      },
      onFault: (error) => this.#end(error),
    });
  }

  listen(listener: PipeListener): void {
    this.#listener = listener;
    this.#client.send("GET", ["accept", "text/event-stream", ...this.#client.headers], this.#stream);
  }

  write(text: string, done: (fault?: GatewayError) => void, headers: readonly string[] = []): void {
    this.#ready.then((path) => this.#post(path, text, done, headers), done);
  }

  async close(): Promise<void> {
    this.#ended = true;
    this.#refuse(new GatewayError("UPSTREAM_UNAVAILABLE", "the connection was closed"));
    this.#stream.stop();
  }

  #post(path: string, text: string, done: (fault?: GatewayError) => void, headers: readonly string[]): void {
    const call = new HttpCall({
      onResponse: (status) => {
        if (status < 200 || status > 299) throw statusError(status);
        done();
        return new WholeBody(ignoredBodyBytes, () => undefined);
      },
      onFault: done,
    });
    this.#client.post(["content-type", "application/json", ...this.#client.headers, ...headers], text, call, path);
  }

  #onEvent(event: SseEvent): void {
    if (this.#ended) return;
    if (event.event === "endpoint" && !this.#announced) {
      this.#announced = true;
      this.#announce(this.#endpoint(event.data));
    } else if ((event.event === undefined || event.event === "message") && event.data !== "") {
      this.#listener?.onMessage(event.data);
    }
  }

  /** The announced address must stay on the stream's own origin: a hostile one would be sent our credentials. */
  #endpoint(text: string): string {
    const { url } = this.#client;
    const readable = text.length <= maxEndpoint && URL.canParse(text, url.href);
    const target = readable ? new URL(text, url) : undefined;
    if (target === undefined || target.origin !== url.origin) {
      throw new GatewayError("UPSTREAM_INVALID", "expected an endpoint on the upstream's own origin");
    }
    return target.pathname + target.search;
  }

  #end(error: GatewayError): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#refuse(error);
    this.#listener?.onEnd(error);
  }
}
