import type { IncomingHttpHeaders } from "node:http";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { JoinedBytes } from "../action/joined-bytes.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import type { ModelApi } from "../action/model-api.ts";
import { readRetryAfter } from "../action/retry.ts";
import { type JsonBounds, longText, parseJsonInTurns, parseStrictJson } from "../action/strict-json.ts";
import type { Admission } from "../egress/breaker.ts";
import { turnsOf } from "../store/pace.ts";
import { EventStream } from "./event-stream.ts";
import type { FailedResponse, ModelResponse, ProviderExchange, ResponseHead } from "./exchange.ts";
import type { ProviderSecret } from "./outgoing.ts";
import type { ResponseOptions } from "./wire/content.ts";
import { translateError } from "./wire/error-shape.ts";
import { StreamReader } from "./wire/stream-reader.ts";
import { StreamTranslator, translateResponse } from "./wire/translate.ts";

/** The limits of one response. */
export interface ResponseBounds {
  readonly json: JsonBounds;
  /** Maximum length of a response that is not streamed. */
  readonly bytes: number;
}

interface AttemptParts {
  readonly exchange: ProviderExchange;
  readonly admission: Admission;
  /** The provider's API. */
  readonly api: ModelApi;
  /** The client's API. */
  readonly clientApi: ModelApi;
  readonly stream: boolean;
  readonly options: ResponseOptions;
  readonly bounds: ResponseBounds;
  readonly secret: ProviderSecret;
  readonly clock: Clock;
  /** Resolves in a later turn of the event loop. */
  readonly pause: () => Promise<void>;
  /** Called with the fault of a stream that failed before its end. */
  readonly onStreamFault: (error: GatewayError) => void;
}

/** Error bodies are short; a longer one is not read. */
const maxErrorBytes = 65_536;
/** A streamed response repeats the same members in each piece. */
const streamFactor = 16;

/** Ends of a stream that are not the provider's fault. */
const neutralFaults: ReadonlySet<ErrorCode> = new Set(["CANCELLED", "MODEL_UNTRANSLATABLE"]);

/** Reads the response to one request and records the result in the circuit breaker. Never rejects for a fault of the provider. */
export async function readResponse(parts: AttemptParts): Promise<ModelResponse | Failure> {
  const { exchange, admission } = parts;
  try {
    const head = await exchange.head();
    if (head.status < 200 || head.status >= 300) return await readFailure(parts, head);
    if (parts.stream) return await openStream(parts, head);
    return await readWhole(parts, head);
  } catch (cause) {
    const error = GatewayError.from(cause);
    exchange.fail(error);
    const failure = failureOfError(error, exchange.isReached);
    recordHealth(admission, failure.isHealthy);
    return failure;
  }
}

async function readWhole(
  { exchange, admission, ...parts }: AttemptParts,
  { status, headers }: ResponseHead,
): Promise<ModelResponse> {
  checkType(headers, "application/json");
  const raw = await readBody(exchange, headers, parts.bounds.bytes);
  parts.secret.refuse(raw);
  const body = await parseObject(raw, parts);
  const translated = translateResponse(parts.api, parts.clientApi, body, parts.options);
  admission.succeeded();
  return { kind: "whole", status, body: translated, ...(parts.api === parts.clientApi ? { raw } : {}) };
}

/** Waits for the first bytes: until then another provider can still be tried. */
async function openStream(parts: AttemptParts, { headers }: ResponseHead): Promise<ModelResponse> {
  checkType(headers, "text/event-stream");
  const { exchange, admission, api, secret, bounds } = parts;
  const first = await exchange.read();
  if (first === undefined) throw new GatewayError("PROVIDER_INVALID", "expected a stream, got an empty body");
  const events = new EventStream({
    exchange,
    first,
    api,
    clientApi: parts.clientApi,
    secret,
    translator: new StreamTranslator(api, parts.clientApi, parts.options),
    maxBytes: bounds.bytes * streamFactor,
    onBegun: () => admission.began(),
    onEnd: (error) => {
      if (error === undefined) return admission.succeeded();
      if (neutralFaults.has(error.code)) return;
      admission.failed();
      parts.onStreamFault(error);
    },
  });
  return { kind: "stream", events, reader: new StreamReader(parts.clientApi, undefined, parts.options.request) };
}

async function readFailure(parts: AttemptParts, { status, headers }: ResponseHead): Promise<Failure> {
  const body = parts.secret.remove(await readError(parts, headers));
  const requestId = parts.secret.remove(headers["x-request-id"] ?? headers["request-id"] ?? null);
  const failure = failureOf(
    status,
    translateError(parts.api, parts.clientApi, status, body, requestId),
    readRetryAfterMs(headers, parts.clock()),
    headers["x-should-retry"] !== "false",
  );
  recordHealth(parts.admission, failure.isHealthy);
  return failure;
}

/** Reads the provider's error body; null where it is unreadable. */
async function readError(parts: AttemptParts, headers: IncomingHttpHeaders): Promise<Json> {
  const { exchange } = parts;
  try {
    return await parseObject(await readBody(exchange, headers, maxErrorBytes), parts);
  } catch (cause) {
    const error = GatewayError.from(cause);
    if (error.code === "CANCELLED") throw error;
    exchange.fail(error);
    return null;
  }
}

function recordHealth(admission: Admission, isHealthy: boolean | null): void {
  if (isHealthy === true) admission.succeeded();
  else if (isHealthy === false) admission.failed();
}

function readRetryAfterMs(headers: IncomingHttpHeaders, nowMs: number): number {
  const text = headers["retry-after"];
  return text === undefined ? 0 : readRetryAfter(text, nowMs);
}

/** Reads the whole body. Rejects with PROVIDER_INVALID beyond `maxBytes`. */
async function readBody(exchange: ProviderExchange, headers: IncomingHttpHeaders, maxBytes: number): Promise<Buffer> {
  const body = new JoinedBytes(Math.min(Number(headers["content-length"] ?? 0), maxBytes));
  for (;;) {
    const chunk = await exchange.read();
    if (chunk === undefined) return body.bytes;
    if (body.add(chunk).length > maxBytes) {
      throw new GatewayError("PROVIDER_INVALID", `expected at most ${maxBytes} bytes, got more`);
    }
  }
}

/** Parses a body that must be a JSON object, a long one over several turns. Rejects with PROVIDER_INVALID for anything else. */
async function parseObject(
  bytes: Uint8Array,
  { bounds, pause }: Pick<AttemptParts, "bounds" | "pause">,
): Promise<JsonObject> {
  let value: Json;
  try {
    if (bytes.length < longText) value = parseStrictJson(bytes, bounds.json);
    else {
      const turns = turnsOf(pause);
      value = await parseJsonInTurns(bytes, bounds.json, turns);
    }
  } catch (cause) {
    throw new GatewayError("PROVIDER_INVALID", GatewayError.from(cause).publicMessage, { cause });
  }
  if (!isJsonObject(value)) throw new GatewayError("PROVIDER_INVALID", "expected a JSON object, got another value");
  return value;
}

/** Throws PROVIDER_INVALID unless the body has the requested type and no encoding. */
function checkType(headers: IncomingHttpHeaders, expected: string): void {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new GatewayError("PROVIDER_INVALID", "expected an answer without content-encoding");
  }
  const type = (headers["content-type"] ?? "").split(";", 1)[0] as string;
  if (type.trim().toLowerCase() === expected) return;
  throw new GatewayError("PROVIDER_INVALID", `expected an answer of type \`${expected}\`, got another`);
}

/** A failed attempt. */
export interface Failure {
  readonly response: FailedResponse;
  /**
   * The permission to send the same request again: `always` where the provider certainly did not receive it, `unapproved`
   * where the provider reports that it did not serve it, which is not enough where an approval was consumed.
   */
  readonly retry: "always" | "unapproved" | "never";
  /** The pause that the provider asked for; 0 where it asked for none. */
  readonly retryAfterMs: number;
  /** Null where the failure is no evidence of the provider's health. */
  readonly isHealthy: boolean | null;
}

/** Not served, as the provider reports, but perhaps at the next attempt. */
const retryable: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 529]);
const busy: ReadonlySet<number> = new Set([429, 529]);
/** Refusals of the gateway's own account; their text is not shown to the client. */
const refusesGateway: ReadonlySet<number> = new Set([401, 402, 403]);

/** The longest `Retry-After` that is passed to clients: a day. */
const maxRetryAfterS = 86_400;

/** The failure for a status other than 2xx. `body` is the provider's error, in the client's API. */
function failureOf(status: number, body: JsonObject, retryAfterMs: number, isRetryable: boolean): Failure {
  const [code, detail] = meaningOf(status);
  const retryAfterS = Math.min(Math.ceil(retryAfterMs / 1000), maxRetryAfterS);
  const data = { http_status: status, ...(retryAfterS > 0 ? { retry_after_s: retryAfterS } : {}) };
  const error = new GatewayError(code, detail, { data });
  const isClientFacing = code === "PROVIDER_REFUSED" || code === "PROVIDER_BUSY";
  return {
    response: {
      kind: "failed",
      error,
      status: isClientFacing ? status : error.row.status,
      body: isClientFacing ? body : null,
      outcome: "error",
      mayFallBack: code !== "PROVIDER_REFUSED",
    },
    retry: isRetryable && retryable.has(status) ? "unapproved" : "never",
    retryAfterMs,
    isHealthy: healthOf(status),
  };
}

/** The failure for an error of the gateway or its connection; `isReached` is true if the provider may have received the request. */
function failureOfError(error: GatewayError, isReached: boolean): Failure {
  const isCancelled = error.code === "CANCELLED";
  // The provider answered well, but the client's API cannot express the response.
  const isUntranslatable = error.code === "MODEL_UNTRANSLATABLE";
  return {
    response: {
      kind: "failed",
      error,
      status: error.row.status,
      body: null,
      outcome: isReached && !isUntranslatable ? "unknown" : "error",
      mayFallBack: !isCancelled && !isUntranslatable,
    },
    retry: isReached || isCancelled ? "never" : "always",
    retryAfterMs: 0,
    isHealthy: isCancelled || isUntranslatable ? null : false,
  };
}

/** The failure for a request that was not sent. */
export function notSent(error: GatewayError): Failure {
  return { ...failureOfError(error, false), retry: "never", isHealthy: null };
}

function meaningOf(status: number): readonly [ErrorCode, string] {
  const answered = `the provider answered HTTP ${status}`;
  if (busy.has(status)) return ["PROVIDER_BUSY", answered];
  if (status < 400) return ["PROVIDER_INVALID", `expected no redirect, got HTTP ${status}`];
  if (refusesGateway.has(status)) return ["PROVIDER_UNAVAILABLE", `the provider refused the gateway (HTTP ${status})`];
  if (status >= 500 || status === 408) return ["PROVIDER_UNAVAILABLE", answered];
  return ["PROVIDER_REFUSED", answered];
}

/** The provider's health by status: a refused request shows a healthy provider; null where the status is no evidence. */
function healthOf(status: number): boolean | null {
  if (status === 403 || status === 408 || status === 429) return null;
  return status >= 400 && status < 500 && !refusesGateway.has(status);
}
