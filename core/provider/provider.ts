import { GatewayError } from "../action/error.ts";
import type { Clock, Random } from "../action/id.ts";
import type { ModelApi, ModelPurpose } from "../action/model-api.ts";
import { type RetryDelays, retryDelay } from "../action/retry.ts";
import type { ProviderConfig } from "../config/gateway-config.ts";
import { CircuitBreaker } from "../egress/breaker.ts";
import { type Failure, notSent, type ResponseBounds, readResponse } from "./attempt.ts";
import type { ModelResponse, ProviderEndpoint, ProviderEventSink, ProviderExchange, ResponseHead } from "./exchange.ts";
import { ProviderSecret } from "./outgoing.ts";
import type { ResponseOptions } from "./wire/content.ts";

export interface ProviderPorts {
  readonly bounds: ResponseBounds;
  readonly delays: RetryDelays;
  readonly clock: Clock;
  readonly elapsedMs: () => number;
  readonly random: Random;
  readonly onEvent: ProviderEventSink;
}

/** A request in one provider's API, and the way its response is returned. */
interface ProviderCall {
  /** JSON, in the provider's API. */
  readonly body: string | Buffer;
  readonly purpose: ModelPurpose;
  readonly stream: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly clientApi: ModelApi;
  readonly options: ResponseOptions;
  /** True if an approval was consumed for it. */
  readonly isApproved: boolean;
  readonly signal: AbortSignal;
  /** Resolves in a later turn of the event loop. */
  readonly pause: () => Promise<void>;
}

/** One provider: its attempts, its limits, its health. */
export class Provider {
  readonly config: ProviderConfig;
  readonly breaker: CircuitBreaker;
  readonly #endpoint: ProviderEndpoint;
  readonly #ports: ProviderPorts;
  readonly #secret: ProviderSecret;
  #inFlight = 0;
  #lastFault: GatewayError | undefined;

  constructor(config: ProviderConfig, endpoint: ProviderEndpoint, ports: ProviderPorts) {
    const { name: provider } = config;
    this.config = config;
    this.#endpoint = endpoint;
    this.#ports = ports;
    this.#secret = new ProviderSecret(config.type === "mock" ? null : config.apiKey);
    this.breaker = new CircuitBreaker(config.breaker, ports.elapsedMs, (state) =>
      ports.onEvent({ kind: "provider_circuit_changed", provider, state }),
    );
  }

  get api(): ModelApi {
    return this.#endpoint.api;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** The fault of the last attempt; undefined where it succeeded. */
  get lastFault(): GatewayError | undefined {
    return this.#lastFault;
  }

  /** Sends the request, and repeats it only where the provider certainly did not serve it before. */
  async request(request: ProviderCall): Promise<ModelResponse> {
    const { name: provider, maxRetries } = this.config;
    for (let failures = 1; ; failures++) {
      const result = await this.#attempt(request);
      if ("kind" in result) return result;
      this.#report(result.response.error);
      if (failures > maxRetries || !mayRetry(result, request)) return result.response;
      const delayMs = retryDelay(failures, result.retryAfterMs, this.#ports.delays, this.#ports.random);
      // A provider that asks for a longer pause is not retried; the client receives its `retry_after_s`.
      if (result.retryAfterMs > delayMs) return result.response;
      this.#ports.onEvent({ kind: "provider_retry_scheduled", provider, attempt: failures + 1, delayMs });
      if (!(await pause(delayMs, request.signal))) return result.response;
    }
  }

  async close(): Promise<void> {
    await this.#endpoint.close();
  }

  async #attempt(request: ProviderCall): Promise<ModelResponse | Failure> {
    const { maxConnections } = this.config;
    if (request.signal.aborted) return notSent(new GatewayError("CANCELLED"));
    if (this.#inFlight >= maxConnections) {
      return notSent(new GatewayError("PROVIDER_BUSY", `expected at most ${maxConnections} requests at once`));
    }
    const admission = this.breaker.admit();
    if (admission === undefined) return notSent(this.#openCircuitError());
    this.#inFlight++;
    const exchange = new TimedExchange(this.#endpoint.send(request), this.config, request.signal, () => {
      this.#inFlight--;
      admission.ended();
    });
    const result = await readResponse({
      ...request,
      exchange,
      admission,
      api: this.api,
      bounds: this.#ports.bounds,
      secret: this.#secret,
      clock: this.#ports.clock,
      onStreamFault: (error) => this.#report(error),
    });
    if ("kind" in result) this.#lastFault = undefined;
    return result;
  }

  #openCircuitError(): GatewayError {
    const seconds = Math.max(1, Math.ceil(this.breaker.remainingMs / 1000));
    return new GatewayError(
      "PROVIDER_UNAVAILABLE",
      `the circuit is open after repeated failures; the next attempt is in ${seconds} s`,
      {
        data: { retry_after_s: seconds },
      },
    );
  }

  #report(error: GatewayError): void {
    if (error.code === "CANCELLED") return;
    this.#lastFault = error;
    const { name: provider } = this.config;
    this.#ports.onEvent({
      kind: "provider_attempt_failed",
      provider,
      code: error.code,
      detail: error.loggedDetail ?? "",
    });
  }
}

function mayRetry({ retry }: Failure, { isApproved }: ProviderCall): boolean {
  return retry === "always" || (retry === "unapproved" && !isApproved);
}

interface TimeLimits {
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxTimeoutMs: number;
}

/**
 * An exchange with time limits: fails with PROVIDER_TIMEOUT, or with CANCELLED when `signal` is aborted.
 * Silence counts only while a reader waits for the next bytes: a slow reader is not the provider's fault.
 */
class TimedExchange implements ProviderExchange {
  readonly #exchange: ProviderExchange;
  readonly #limits: TimeLimits;
  readonly #signal: AbortSignal;
  readonly #onReleased: () => void;
  readonly #onAbort = (): void => this.fail(new GatewayError("CANCELLED", "the client no longer waits for the answer"));
  readonly #totalTimer: NodeJS.Timeout;
  #silenceTimer: NodeJS.Timeout;
  #hasBegun = false;
  #isReleased = false;

  /** `onReleased` is called once, when the connection is no longer needed. */
  constructor(exchange: ProviderExchange, limits: TimeLimits, signal: AbortSignal, onReleased: () => void) {
    this.#exchange = exchange;
    this.#limits = limits;
    this.#signal = signal;
    this.#onReleased = onReleased;
    this.#totalTimer = this.#expire("in all", limits.maxTimeoutMs);
    this.#silenceTimer = this.#expire("to the first byte", limits.firstByteTimeoutMs);
    signal.addEventListener("abort", this.#onAbort);
    if (signal.aborted) this.#onAbort();
  }

  get isReached(): boolean {
    return this.#exchange.isReached;
  }

  async head(): Promise<ResponseHead> {
    try {
      return await this.#exchange.head();
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#hasBegun) this.#silenceTimer = this.#expire("since the last byte", this.#limits.idleTimeoutMs);
    try {
      const chunk = await this.#exchange.read();
      if (chunk === undefined) this.#release();
      return chunk;
    } catch (error) {
      this.#release();
      throw error;
    } finally {
      this.#hasBegun = true;
      clearTimeout(this.#silenceTimer);
    }
  }

  fail(error: GatewayError): void {
    this.#release();
    this.#exchange.fail(error);
  }

  #expire(since: string, ms: number): NodeJS.Timeout {
    return setTimeout(
      () => this.fail(new GatewayError("PROVIDER_TIMEOUT", `expected more within ${ms} ms ${since}`)),
      ms,
    );
  }

  #release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    clearTimeout(this.#totalTimer);
    clearTimeout(this.#silenceTimer);
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#onReleased();
  }
}

/** Waits for the delay; resolves with false at once when the signal is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isElapsed: boolean): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(isElapsed);
    };
    const onAbort = (): void => end(false);
    const timer = setTimeout(() => end(true), ms);
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) end(false);
  });
}
