import { GatewayError } from "../action/error.ts";
import { parsedUrl } from "../action/parsed-url.ts";
import type { Pipe, PipeListener } from "./duplex-transport.ts";
import { HttpCall, type HttpClient, requireEventStream, statusError } from "./http-client.ts";
import { isMessage, type SseEvent, SseReader } from "./sse-reader.ts";
import type { ReplyBounds } from "./transport.ts";

const ignoredBodyBytes = 65_536;
const maxEndpoint = 4_096;

/** The HTTP+SSE transport: one event stream for all responses, and a POST for each message to the address it announced. */
export class SsePipe implements Pipe {
  readonly #client: HttpClient;
  readonly #stream: HttpCall;
  readonly #endpoint: Promise<string>;
  #announce!: (path: string) => void;
  #refuse!: (error: GatewayError) => void;
  #listener: PipeListener | undefined;
  #isAnnounced = false;
  #isEnded = false;

  constructor(client: HttpClient, bounds: ReplyBounds) {
    this.#client = client;
    this.#endpoint = new Promise((resolve, reject) => {
      this.#announce = resolve;
      this.#refuse = reject;
    });
    // Writers receive the rejection; without a write nobody needs it.
    this.#endpoint.catch(() => undefined);
    this.#stream = new HttpCall({
      onResponse: (status, headers) => {
        requireEventStream(status, headers);
        return new SseReader(bounds.bytes, {
          onEvent: (event) => this.#onEvent(event),
          onEnd: () => this.#end(new GatewayError("UPSTREAM_UNAVAILABLE", "the upstream closed its event stream")),
        });
      },
      onFault: (error) => this.#end(error),
    });
  }

  listen(listener: PipeListener): void {
    this.#listener = listener;
    const headers = ["accept", "text/event-stream", ...this.#client.headers];
    this.#client.send({ method: "GET", headers }, this.#stream);
  }

  write(text: string, done: (fault?: GatewayError) => void, headers: readonly string[] = []): void {
    this.#endpoint.then((path) => this.#post(path, text, done, headers), done);
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  async close(): Promise<void> {
    this.#isEnded = true;
    this.#refuse(new GatewayError("UPSTREAM_UNAVAILABLE", "the connection was closed"));
    this.#stream.stop();
  }

  #post(path: string, body: string, done: (fault?: GatewayError) => void, extraHeaders: readonly string[]): void {
    const call = new HttpCall({
      onResponse: (status) => {
        if (status < 200 || status > 299) throw statusError(status);
        done();
        return ignoredBodyBytes;
      },
      onFault: done,
    });
    const headers = ["content-type", "application/json", ...this.#client.headers, ...extraHeaders];
    this.#client.send({ method: "POST", headers, body, path }, call);
  }

  #onEvent(event: SseEvent): void {
    if (this.#isEnded) return;
    if (event.event === "endpoint" && !this.#isAnnounced) {
      this.#isAnnounced = true;
      this.#announce(this.#resolveEndpoint(event.data));
    } else if (isMessage(event)) this.#listener?.onMessage(event.data);
  }

  /** The announced address must stay on the stream's own origin: a hostile one would receive our credentials. */
  #resolveEndpoint(data: SseEvent["data"]): string {
    const { url } = this.#client;
    const target =
      data instanceof Buffer && data.length <= maxEndpoint ? parsedUrl(data.toString(), url.href) : undefined;
    if (target === undefined || target.origin !== url.origin) {
      throw new GatewayError("UPSTREAM_INVALID", "expected an endpoint on the upstream's own origin");
    }
    return target.pathname + target.search;
  }

  #end(error: GatewayError): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#refuse(error);
    this.#listener?.onEnd(error);
  }
}
