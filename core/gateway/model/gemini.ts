import type { Context } from "koa";
import { GatewayError } from "../../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { GeminiFraming } from "./gemini-reply.ts";

const methods = ["generateContent", "streamGenerateContent", "countTokens"] as const;
type GeminiMethod = (typeof methods)[number];

/** The address of a Gemini request. */
interface GeminiCall {
  readonly model: string;
  readonly method: GeminiMethod;
  /** The form of a stream. */
  readonly framing: GeminiFraming;
}

const maxShown = 64;

/**
 * Reads the last segment of the path, `{model}:{method}`, and `alt` of the query. Throws NOT_FOUND and INVALID_REQUEST.
 */
export function readGeminiCall(ctx: Context): GeminiCall {
  const { model: call = "" } = ctx.params as { readonly model?: string };
  const colon = call.lastIndexOf(":");
  const named = colon === -1 ? "" : call.slice(colon + 1);
  const method = methods.find((each) => each === named);
  if (method === undefined) {
    const served = methods.map((each) => `\`:${each}\``).join(", ");
    throw new GatewayError(
      "NOT_FOUND",
      `expected one of ${served} behind the model, got \`${named.slice(0, maxShown)}\``,
    );
  }
  return { model: call.slice(0, colon), method, framing: readFraming(ctx) };
}

function readFraming(ctx: Context): GeminiFraming {
  const [alt = "json", ...more] = new URLSearchParams(ctx.querystring).getAll("alt");
  if (more.length > 0 || (alt !== "json" && alt !== "sse")) {
    throw new GatewayError("INVALID_REQUEST", "expected `alt` once, as `sse` or `json`");
  }
  return alt === "sse" ? "sse" : "array";
}

/** A model as the Gemini API lists it. */
export function geminiModel(id: string): JsonObject {
  return {
    name: `models/${id}`,
    version: "001",
    displayName: id,
    supportedGenerationMethods: [...methods],
  };
}

/** Members of chat requests by the members of Gemini requests that they were translated from. */
const geminiNames: ReadonlyMap<string, string> = new Map([
  ["response_format", "generationConfig.responseMimeType"],
  ["seed", "generationConfig.seed"],
  ["stop", "generationConfig.stopSequences"],
  ["presence_penalty", "generationConfig.presencePenalty"],
  ["frequency_penalty", "generationConfig.frequencyPenalty"],
  ["temperature", "generationConfig.temperature"],
]);

/** The error with the Gemini name of a member that a provider's API has no equivalent for; any other as it is. */
export function inGeminiNames(cause: unknown): GatewayError {
  const error = GatewayError.from(cause);
  const name = error.code === "MODEL_UNTRANSLATABLE" ? geminiNames.get(String(error.data?.param)) : undefined;
  if (name === undefined) return error;
  return new GatewayError("MODEL_UNTRANSLATABLE", `\`${name}\``, { data: { param: name } });
}

/** A request that names its model once more, which must be that of the path. Throws INVALID_REQUEST. */
export function withoutModel(request: Json, model: string): Json {
  if (!isJsonObject(request) || request.model === undefined) return request;
  const { model: named, ...others } = request;
  if (named !== `models/${model}` && named !== model) {
    throw new GatewayError("INVALID_REQUEST", "expected `model` to be that of the path");
  }
  return others;
}
