import type { IncomingHttpHeaders } from "node:http";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Clock } from "../action/id.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import type { ModelApi } from "../action/model-api.ts";
import { readRetryAfter } from "../action/retry.ts";
import { type JsonBounds, parseStrictJson } from "../action/strict-json.ts";
import type { Admission } from "./breaker.ts";
import { EventStream } from "./event-stream.ts";
import type { Exchange, FailedAnswer, Head, ModelAnswer } from "./exchange.ts";
import type { ProviderSecret } from "./outgoing.ts";
import type { AnswerOptions } from "./wire/content.ts";
import { translateError } from "./wire/error-shape.ts";
import { StreamReader } from "./wire/stream-reader.ts";
import { StreamTranslator, translateResponse } from "./wire/translate.ts";

/** What one answer may come to. */
export interface AnswerBounds {
  readonly json: JsonBounds;
  /** Of an answer that is not streamed. */
  readonly bytes: number;
}

interface AttemptParts {
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
const maxErrorBytes = 65_536;
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
    return parseObject(await readBody(exchange, maxErrorBytes), bounds.json);
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

/** The whole body of at most `maxBytes`. Beyond that the exchange ends, with PROVIDER_INVALID. */
async function readBody(exchange: Exchange, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const chunk = await exchange.read();
    if (chunk === undefined) return Buffer.concat(chunks, size);
    size += chunk.length;
    if (size > maxBytes) throw new GatewayError("PROVIDER_INVALID", `expected at most ${maxBytes} bytes, got more`);
    chunks.push(chunk);
  }
}

/** The object that a body holds. Throws PROVIDER_INVALID for anything else. */
function parseObject(bytes: Uint8Array, bounds: JsonBounds): JsonObject {
  let value: Json;
  try {
    value = parseStrictJson(bytes, bounds);
  } catch (cause) {
    throw new GatewayError("PROVIDER_INVALID", GatewayError.from(cause).publicMessage, { cause });
  }
  if (!isJsonObject(value)) throw new GatewayError("PROVIDER_INVALID", "expected a JSON object, got another value");
  return value;
}

/** Throws PROVIDER_INVALID unless the body has the type that was asked for, and no encoding: none was asked for. */
function checkType(headers: IncomingHttpHeaders, expected: string): void {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    throw new GatewayError("PROVIDER_INVALID", "expected an answer without content-encoding");
  }
  const type = (headers["content-type"] ?? "").split(";", 1)[0] as string;
  if (type.trim().toLowerCase() === expected) return;
  throw new GatewayError("PROVIDER_INVALID", `expected an answer of type \`${expected}\`, got another`);
}

/** An attempt that came to nothing. */
export interface Failure {
  readonly answer: FailedAnswer;
  /**
   * Whether the same request may be sent again: `always` where the provider certainly saw nothing of it, `unapproved`
   * where it says that it did not serve it; that is not enough where an approval was used up.
   */
  readonly again: "always" | "unapproved" | "never";
  /** How long the provider wants to be left alone; 0 where it says nothing. */
  readonly askedMs: number;
  /** Null where it says nothing about the provider's health. */
  readonly healthy: boolean | null;
}

/** Not served, as the provider says itself, and perhaps at the next attempt. */
const repeatable: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 529]);
const busy: ReadonlySet<number> = new Set([429, 529]);
/** About the gateway's own account. What they say is none of the client's business. */
const refusesGateway: ReadonlySet<number> = new Set([401, 402, 403]);

/** Clients are told to wait a day at most, whatever the provider asks for. */
const maxRestS = 86_400;

/** What a status other than 2xx stands for. `body` is what the provider says, in the client's API. */
function failureOf(status: number, body: JsonObject, askedMs: number, repeats: boolean): Failure {
  const [code, detail] = meaningOf(status);
  const retryAfterS = Math.min(Math.ceil(askedMs / 1000), maxRestS);
  const data = { http_status: status, ...(retryAfterS > 0 ? { retry_after_s: retryAfterS } : {}) };
  const error = new GatewayError(code, detail, { data });
  const own = code === "PROVIDER_REFUSED" || code === "PROVIDER_BUSY";
  return {
    answer: {
      kind: "failed",
      error,
      status: own ? status : error.row.status,
      body: own ? body : null,
      outcome: "error",
      elsewhere: code !== "PROVIDER_REFUSED",
    },
    again: repeats && repeatable.has(status) ? "unapproved" : "never",
    askedMs,
    healthy: healthOf(status),
  };
}

/** An attempt that ended in an error of ours; `reached` as the exchange says. */
function brokenOff(error: GatewayError, reached: boolean): Failure {
  const cancelled = error.code === "CANCELLED";
  // It was answered, and well: only this client's API has no words for it.
  const inexpressible = error.code === "MODEL_UNTRANSLATABLE";
  return {
    answer: {
      kind: "failed",
      error,
      status: error.row.status,
      body: null,
      outcome: reached && !inexpressible ? "unknown" : "error",
      elsewhere: !cancelled && !inexpressible,
    },
    again: reached || cancelled ? "never" : "always",
    askedMs: 0,
    healthy: cancelled || inexpressible ? null : false,
  };
}

/** Nothing was sent at all. */
export function notSent(error: GatewayError): Failure {
  return { ...brokenOff(error, false), again: "never", healthy: null };
}

function meaningOf(status: number): readonly [ErrorCode, string] {
  const answered = `it answered HTTP ${status}`;
  if (busy.has(status)) return ["PROVIDER_BUSY", answered];
  if (status < 400) return ["PROVIDER_INVALID", `expected no redirect, got HTTP ${status}`];
  if (refusesGateway.has(status)) return ["PROVIDER_UNAVAILABLE", `it refused the gateway (HTTP ${status})`];
  if (status >= 500 || status === 408) return ["PROVIDER_UNAVAILABLE", answered];
  return ["PROVIDER_REFUSED", answered];
}

/** A provider that refuses a request is well; one that is asked too much may be. */
function healthOf(status: number): boolean | null {
  if (status === 403 || status === 408 || status === 429) return null;
  return status >= 400 && status < 500 && !refusesGateway.has(status);
}
