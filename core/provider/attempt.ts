import type { IncomingHttpHeaders } from "node:http";
import { type ErrorCode, GatewayError } from "../kernel/error.ts";
import type { Json } from "../kernel/json.ts";
import type { ModelApi } from "../kernel/model-api.ts";
import type { Clock } from "../kernel/port.ts";
import { readRetryAfter } from "../kernel/retry.ts";
import type { JsonBounds } from "../kernel/strict-json.ts";
import type { ModelAnswer } from "./answer.ts";
import { checkType, parseObject, readBody } from "./body.ts";
import type { Admission } from "./breaker.ts";
import { EventStream } from "./event-stream.ts";
import type { Exchange, Head } from "./exchange.ts";
import { brokenOff, type Failure, failureOf } from "./failure.ts";
import type { ProviderSecret } from "./secret.ts";
import type { AnswerOptions } from "./wire/answer-option.ts";
import { translateError } from "./wire/error-shape.ts";
import { StreamReader } from "./wire/stream-reader.ts";
import { StreamTranslator } from "./wire/stream-translator.ts";
import { translateResponse } from "./wire/translate.ts";

/** What one answer may come to. */
export interface AnswerBounds {
  readonly json: JsonBounds;
  /** Of an answer that is not streamed. */
  readonly bytes: number;
}

export interface AttemptParts {
  readonly exchange: Exchange;
  readonly admission: Admission;
  /** The provider's. */
  readonly api: ModelApi;
  /** The client's. */
  readonly clientApi: ModelApi;
  readonly stream: boolean;
  readonly options: AnswerOptions;
  readonly bounds: AnswerBounds;
  readonly secret: ProviderSecret;
  readonly clock: Clock;
  /** Told of a stream that broke off. */
  readonly onBroken: (error: GatewayError) => void;
}

/** An error is a few words; what is longer is not read. */
const mostErrorBytes = 65_536;
/** Each piece of a streamed answer carries the same members again. */
const streamFactor = 16;

/** Ends of a stream that are not the provider's doing. */
const saysNothing: ReadonlySet<ErrorCode> = new Set(["CANCELLED", "MODEL_UNTRANSLATABLE"]);

/** Reads the answer to one request, and tells the breaker what it came to. Never rejects for what a provider did. */
export async function readAnswer(parts: AttemptParts): Promise<ModelAnswer | Failure> {
  const { exchange, admission } = parts;
  try {
    const head = await exchange.head();
    if (head.status < 200 || head.status >= 300) return await readFailure(parts, head);
    if (parts.stream) return await openStream(parts, head);
    return await readWhole(parts, head);
  } catch (cause) {
    const error = GatewayError.from(cause);
    exchange.fail(error);
    const failure = brokenOff(error, exchange.reached);
    tell(admission, failure.healthy);
    return failure;
  }
}

async function readWhole(
  { exchange, admission, ...parts }: AttemptParts,
  { status, headers }: Head,
): Promise<ModelAnswer> {
  checkType(headers, "application/json");
  const raw = await readBody(exchange, parts.bounds.bytes);
  parts.secret.refuse(raw);
  const body = parseObject(raw, parts.bounds.json);
  const translated = translateResponse(parts.api, parts.clientApi, body, parts.options);
  admission.succeeded();
  return { kind: "whole", status, body: translated, ...(parts.api === parts.clientApi ? { raw } : {}) };
}

/** Waits for the first bytes: a provider that is silent after its head can still be replaced by another. */
async function openStream(parts: AttemptParts, { headers }: Head): Promise<ModelAnswer> {
  checkType(headers, "text/event-stream");
  const { exchange, admission, api, secret, bounds } = parts;
  const first = await exchange.read();
  if (first === undefined) throw new GatewayError("PROVIDER_INVALID", "expected a stream, got an empty body");
  const events = new EventStream({
    exchange,
    first,
    api,
    secret,
    translator: new StreamTranslator(api, parts.clientApi, parts.options),
    maxBytes: bounds.bytes * streamFactor,
    onBegun: () => admission.began(),
    onEnd: (error) => {
      if (error === undefined) return admission.succeeded();
      if (saysNothing.has(error.code)) return;
      admission.failed();
      parts.onBroken(error);
    },
  });
  return { kind: "stream", events, reader: new StreamReader(parts.clientApi) };
}

async function readFailure(parts: AttemptParts, { status, headers }: Head): Promise<Failure> {
  const said = parts.secret.remove(await readError(parts));
  const failure = failureOf(
    status,
    translateError(parts.api, parts.clientApi, status, said),
    askedMs(headers, parts.clock()),
    headers["x-should-retry"] !== "false",
  );
  tell(parts.admission, failure.healthy);
  return failure;
}

/** What the provider says of an error; null where that cannot be read. */
async function readError({ exchange, bounds }: AttemptParts): Promise<Json> {
  try {
    return parseObject(await readBody(exchange, mostErrorBytes), bounds.json);
  } catch (cause) {
    const error = GatewayError.from(cause);
    if (error.code === "CANCELLED") throw error;
    exchange.fail(error);
    return null;
  }
}

function tell(admission: Admission, healthy: boolean | null): void {
  if (healthy === true) admission.succeeded();
  else if (healthy === false) admission.failed();
}

function askedMs(headers: IncomingHttpHeaders, nowMs: number): number {
  const text = headers["retry-after"];
  return text === undefined ? 0 : readRetryAfter(text, nowMs);
}
