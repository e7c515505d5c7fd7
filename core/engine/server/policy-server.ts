import { performance } from "node:perf_hooks";
import { Pool } from "undici";
import type { CancelSignal } from "../../action/cancellation.ts";
import { contentDigest } from "../../action/canonical-json.ts";
import { readBody } from "../../egress/body.ts";
import { type BreakerState, CircuitBreaker } from "../../egress/breaker.ts";
import type { EgressGuard } from "../../egress/egress-guard.ts";
import { EngineError } from "../engine-fault.ts";

/** Requests to one server at a time; further ones block at once. */
const maxInFlight = 64;
const maxRequestBytes = 1_048_576;
const maxAnswerBytes = 65_536;
const breakerLimits = { failures: 5, restMs: 1_000 };
/** Statuses of a server that is down or busy. Others may be due to one action, which must not open the circuit for all. */
const outages: ReadonlySet<number> = new Set([429, 502, 503, 504]);

interface PolicyServerOptions {
  readonly url: string;
  /** A bearer token; null where none is sent. */
  readonly token: string | null;
  /** Time for one answer, from connecting to its last byte. */
  readonly deadlineMs: number;
  readonly egress: EgressGuard;
  readonly onCircuit: (state: BreakerState) => void;
  /** Monotonic clock in milliseconds. */
  readonly elapsedMs?: () => number;
}

/** The body of an answer with status 200. */
export interface ServerAnswer {
  readonly body: Buffer;
  /** `sha256:<hex>` over `body`. */
  readonly digest: string;
}

/**
 * The client of one server that decides. Follows no redirect and accepts no encoding. After five failures in a row it asks
 * nothing for a second, then one request at a time until the server answers. Idle connections end by themselves.
 */
export class PolicyServer {
  readonly #pool: Pool;
  readonly #prefix: string;
  readonly #search: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #deadlineMs: number;
  readonly #breaker: CircuitBreaker;
  #inFlight = 0;

  constructor(options: PolicyServerOptions) {
    const { token, deadlineMs, egress, onCircuit, elapsedMs = () => performance.now() } = options;
    const url = new URL(options.url);
    this.#prefix = url.pathname.replace(/\/$/, "");
    this.#search = url.search;
    this.#headers = {
      "content-type": "application/json",
      accept: "application/json",
      "accept-encoding": "identity",
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    };
    this.#deadlineMs = deadlineMs;
    this.#breaker = new CircuitBreaker(breakerLimits, elapsedMs, onCircuit);
    const connect = egress.connector(url, deadlineMs);
    this.#pool = new Pool(url.origin, { connections: maxInFlight, bodyTimeout: 0, headersTimeout: 0, connect });
  }

  /**
   * Posts JSON to a path below the configured URL. Rejects with EngineError for everything but a body of at most 64 KiB with
   * status 200, within the deadline. `cancel` ends the request.
   */
  async post(path: string, json: string, cancel?: CancelSignal): Promise<ServerAnswer> {
    const bytes = Buffer.from(json);
    if (bytes.length > maxRequestBytes)
      throw new EngineError("input", `expected an action of at most ${maxRequestBytes} bytes`);
    if (cancel?.aborted === true) throw cancelled();
    if (this.#inFlight >= maxInFlight)
      throw new EngineError("overloaded", `${maxInFlight} requests to the server are in flight`);
    const admission = this.#breaker.admit();
    if (admission === undefined)
      throw new EngineError("circuit_open", "the server failed repeatedly and is not asked for a second");
    this.#inFlight++;
    const race = new Race(this.#deadlineMs, cancel);
    try {
      const response = await race.run(this.#exchange(path, bytes, race.signal));
      if (outages.has(response.status)) admission.failed();
      else admission.succeeded();
      return accept(response);
    } catch (error) {
      if (!(error instanceof EngineError)) {
        admission.failed();
        const code = (error as NodeJS.ErrnoException).code ?? (error as Error).name;
        throw new EngineError("unreachable", `the connection to the server failed (${code})`);
      }
      if (error.reason === "timeout") admission.failed();
      throw error;
    } finally {
      admission.ended();
      race.end();
      this.#inFlight--;
    }
  }

  async #exchange(path: string, body: Buffer, signal: AbortSignal): Promise<ServerResponse> {
    const {
      statusCode,
      headers,
      body: stream,
    } = await this.#pool.request({
      ...{ method: "POST", path: this.#prefix + path + this.#search, headers: this.#headers, body, signal },
    });
    const encoding = headers["content-encoding"];
    const isPlain = encoding === undefined || encoding === "identity";
    return { status: statusCode, isPlain, body: await readBody(stream, maxAnswerBytes) };
  }
}

interface ServerResponse {
  readonly status: number;
  /** False for an encoded body. */
  readonly isPlain: boolean;
  /** Undefined where it is too large. */
  readonly body: Buffer | undefined;
}

function accept({ status, isPlain, body }: ServerResponse): ServerAnswer {
  const digest = body && contentDigest(body);
  if (status !== 200) throw new EngineError("status", `expected HTTP 200 from the server, got ${status}`, digest);
  if (body === undefined || digest === undefined)
    throw new EngineError("answer", `expected an answer of at most ${maxAnswerBytes} bytes`);
  if (!isPlain) throw new EngineError("answer", "expected an answer without content-encoding", digest);
  return { body, digest };
}

function cancelled(): EngineError {
  return new EngineError("cancelled", "the agent that asked is gone");
}

/** One request against its deadline and its caller: whoever ends it first aborts the request. */
class Race {
  readonly #request = new AbortController();
  readonly #lost: Promise<never>;
  readonly #timer: NodeJS.Timeout;
  readonly #cancel: CancelSignal | undefined;
  #lose!: (error: EngineError) => void;
  readonly #leave = (): void => this.#lose(cancelled());

  constructor(deadlineMs: number, cancel: CancelSignal | undefined) {
    this.#cancel = cancel;
    this.#lost = new Promise((_, reject) => {
      this.#lose = (error) => {
        reject(error);
        this.#request.abort();
      };
    });
    const late = (): void => this.#lose(new EngineError("timeout", `expected an answer within ${deadlineMs} ms`));
    // An answer that came while the thread was held up by something else is not late.
    this.#timer = setTimeout(() => setImmediate(late), deadlineMs);
    cancel?.addEventListener("abort", this.#leave, { once: true });
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  run<Result>(exchange: Promise<Result>): Promise<Result> {
    return Promise.race([exchange, this.#lost]);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#cancel?.removeEventListener("abort", this.#leave);
  }
}
