import type { Context } from "koa";
import type { ErrorCode, GatewayError } from "../../action/error.ts";
import type { JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import { retryAfter, retryAfterHeader } from "../../http/refusal.ts";
import { geminiError } from "../../provider/wire/gemini/error.ts";
import { failureEvent } from "../../provider/wire/responses/failure.ts";
import type { EventSink } from "./reply.ts";

/** Codes that clients must not retry: each repeat would cause another review, or is refused for lack of budget. */
const final: ReadonlySet<ErrorCode> = new Set([
  "POLICY_BLOCKED",
  "REVIEW_REQUIRED",
  "APPROVAL_DENIED",
  "APPROVAL_QUEUE_FULL",
  "SESSION_KILLED",
  "BUDGET_EXHAUSTED",
]);

/** Codes with a name of their own in the model APIs. */
const names: Partial<Readonly<Record<ErrorCode, string>>> = {
  REVIEW_REQUIRED: "approval_required",
  KEY_MISSING: "invalid_api_key",
  KEY_UNKNOWN: "invalid_api_key",
  MODEL_UNKNOWN: "model_not_found",
  RATE_LIMITED: "rate_limit_exceeded",
  BUDGET_EXHAUSTED: "insufficient_quota",
};

const messagesTypes: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  504: "timeout_error",
};

const chatTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

/** A form of errors: of the APIs in which requests are judged, and of the Gemini API. */
type ErrorForm = ModelApi | "gemini";

/** Paths of the Gemini API: all below its version, and those of the other APIs' version that name a method. */
const geminiPath = /^\/(?:v1beta\/|v1\/models\/[^/]*:)/;

/** Paths of agents that ask before they act: no model is behind them. */
const askingPath = /^\/v1\/(?:actions|hooks)\//;

/** The API in whose shape a request lists models: the one whose own header it has, else the chat API. */
export function listedForm({ req: { headers } }: Context): "chat" | "messages" | "gemini" {
  if (headers["x-goog-api-key"] !== undefined) return "gemini";
  return headers["anthropic-version"] === undefined ? "chat" : "messages";
}

/** The API whose error shape the clients of a path read, served or not; undefined for a path of none. */
function errorFormOf(ctx: Context): ErrorForm | undefined {
  const { path } = ctx;
  const isOfModels = path === "/v1/models" || path.startsWith("/v1/models/");
  if (isOfModels && (ctx.method === "GET" || ctx.method === "HEAD")) return listedForm(ctx);
  if (geminiPath.test(path)) return "gemini";
  if (path === "/v1/messages" || path.startsWith("/v1/messages/")) return "messages";
  if (path === "/v1/responses" || path.startsWith("/v1/responses/")) return "responses";
  return path.startsWith("/v1/") && !askingPath.test(path) ? "chat" : undefined;
}

/** An error in the shape of an API, with our code and the request id. */
export function modelErrorBody(api: ErrorForm, error: GatewayError, requestId: string): JsonObject {
  const code = names[error.code] ?? error.code.toLowerCase();
  const data = error.row.expose && error.data !== undefined ? { data: error.data as JsonObject } : {};
  const message = error.publicMessage;
  if (api === "gemini") return geminiError(error.row.status, message, geminiDetails(code, data, error, requestId));
  if (api === "messages") {
    const type = messagesTypes[error.row.status] ?? (error.row.status < 500 ? "invalid_request_error" : "api_error");
    return { type: "error", error: { type, message, code, ...data }, request_id: requestId };
  }
  const type = chatTypes[error.row.status] ?? (error.row.status < 500 ? "invalid_request_error" : "server_error");
  const param = error.row.expose && typeof error.data?.param === "string" ? error.data.param : null;
  return { error: { message, type, param, code, ...data } };
}

/** The parts of a Gemini error that its clients read by type: our code and the request id, the data, the pause. */
function geminiDetails(code: string, data: JsonObject, error: GatewayError, requestId: string): readonly JsonObject[] {
  const type = "type.googleapis.com/google";
  const { retry_after: seconds } = retryAfter(error);
  return [
    {
      "@type": `${type}.rpc.ErrorInfo`,
      reason: code,
      domain: "agent-governance-gateway",
      metadata: { request_id: requestId },
    },
    ...(data.data === undefined ? [] : [{ "@type": `${type}.protobuf.Struct`, value: data.data }]),
    ...(seconds === undefined ? [] : [{ "@type": `${type}.rpc.RetryInfo`, retryDelay: `${seconds}s` }]),
  ];
}

/** The last event of a stream that ends in an error, in the shape of an API, after what was sent of it. */
export function modelErrorEvent(
  api: ModelApi,
  error: GatewayError,
  requestId: string,
  sink: Pick<EventSink, "sent" | "answer">,
): Buffer {
  const body = modelErrorBody(api, error, requestId);
  if (api === "responses") {
    const { id = `resp_${requestId}`, model = "", created_at: created = 0 } = sink.answer();
    const failure = { error: body.error as JsonObject, isFinal: isFinal(error), sequence: sink.sent };
    return Buffer.from(failureEvent({ ...failure, head: { id, model, created_at: created } }).raw);
  }
  const name = api === "messages" ? "event: error\n" : "";
  return Buffer.from(`${name}data: ${JSON.stringify(body)}\n\n`);
}

/** Renders an error on a path of a model API, in that API's shape. False: on any other path. */
export function renderModelError(ctx: Context, error: GatewayError, requestId: string): boolean {
  const api = errorFormOf(ctx);
  if (api === undefined) return false;
  ctx.status = error.row.status;
  ctx.set({ "request-id": requestId, ...retryAfterHeader(error) });
  if (isFinal(error)) ctx.set("x-should-retry", "false");
  ctx.type = "application/json";
  ctx.body = JSON.stringify(modelErrorBody(api, error, requestId));
  return true;
}

/** An action that used up an approval needs a new one, whatever went wrong with it. */
function isFinal(error: GatewayError): boolean {
  return final.has(error.code) || error.data?.approval !== undefined;
}
