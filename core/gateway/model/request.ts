import { GatewayError } from "../../action/error.ts";
import { isGiven, isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi, ModelPurpose } from "../../action/model-api.ts";
import type { ReplyForm } from "./reply.ts";

/** A model request with the members that the gateway acts on; the rest passes unchanged. */
export interface ModelRequest {
  readonly api: ModelApi;
  readonly body: JsonObject;
  readonly model: string;
  readonly stream: boolean;
  /** The form of the reply; undefined where it is that of the API. */
  readonly form?: ReplyForm;
  readonly purpose: ModelPurpose;
}

const maxModel = 256;

/** Reads a request of an API. Throws INVALID_REQUEST. */
export function readModelRequest(api: ModelApi, body: Json): ModelRequest {
  const { object, model } = readModel(body);
  const { stream } = object;
  if (api === "responses") checkResponses(object);
  else if (!isFilledList(object.messages)) {
    throw new GatewayError("INVALID_REQUEST", "expected `messages` to be a list that is not empty");
  }
  if (stream !== undefined && stream !== null && typeof stream !== "boolean") {
    throw new GatewayError("INVALID_REQUEST", "expected `stream` to be true or false");
  }
  return { api, body: object, model, stream: stream === true, purpose: "answer" };
}

/** Reads a request for embeddings: of a text, of some texts, or of texts as the numbers of their tokens. Throws INVALID_REQUEST. */
export function readEmbeddingsRequest(body: Json): ModelRequest {
  const { object, model } = readModel(body);
  const { input, stream } = object;
  if (isGiven(stream) && stream !== false)
    throw new GatewayError("INVALID_REQUEST", "expected no `stream`: embeddings come whole");
  if (!isText(input) && !isTokens(input) && !isListOf(input, isText) && !isListOf(input, isTokens)) {
    throw new GatewayError(
      "INVALID_REQUEST",
      "expected `input` to be a text, a list of texts, a list of tokens or a list of those, none of them empty",
    );
  }
  return { api: "chat", body: object, model, stream: false, purpose: "embed" };
}

function readModel(body: Json): { readonly object: JsonObject; readonly model: string } {
  if (!isJsonObject(body)) throw new GatewayError("INVALID_REQUEST", "expected an object");
  const { model } = body;
  if (typeof model === "string" && model !== "" && model.length <= maxModel) return { object: body, model };
  throw new GatewayError("INVALID_REQUEST", `expected \`model\` to be a text of 1 to ${maxModel} characters`);
}

function isText(value: Json | undefined): boolean {
  return typeof value === "string" && value !== "";
}

function isTokens(value: Json | undefined): boolean {
  return isListOf(value, (token) => Number.isSafeInteger(token) && (token as number) >= 0);
}

function isListOf(value: Json | undefined, isOfKind: (item: Json) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isOfKind);
}

/** Members of the responses API that no provider may be sent: policy could not judge what they stand for. */
const unserved: Readonly<Record<string, string>> = {
  background: "its answer would be fetched past the gateway; send the request without it, streamed if it takes long",
  conversation: "policy cannot judge what the provider keeps; send the whole conversation in `input`",
  prompt: "policy cannot judge what the provider keeps; send `instructions` and `input`",
};

function checkResponses(body: JsonObject): void {
  for (const [name, instead] of Object.entries(unserved)) {
    if (!isGiven(body[name]) || body[name] === false) continue;
    throw new GatewayError("INVALID_REQUEST", `\`${name}\` is not served: ${instead}`, { data: { param: name } });
  }
  const { input } = body;
  if (isText(input) || isFilledList(input)) return;
  throw new GatewayError("INVALID_REQUEST", "expected `input` to be a text or a list, neither of them empty");
}

function isFilledList(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length > 0;
}
