import { GatewayError } from "../../action/error.ts";
import { isGiven, isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import type { ModelApi } from "../../action/model-api.ts";
import type { ReplyForm } from "./reply.ts";

/** A model request with the members that the gateway acts on; the rest passes unchanged. */
export interface ModelRequest {
  readonly api: ModelApi;
  readonly body: JsonObject;
  readonly model: string;
  readonly stream: boolean;
  /** The form of the reply; undefined where it is that of the API. */
  readonly form?: ReplyForm;
}

const maxModel = 256;

/** Reads a request of an API. Throws INVALID_REQUEST. */
export function readModelRequest(api: ModelApi, body: Json): ModelRequest {
  if (!isJsonObject(body)) throw new GatewayError("INVALID_REQUEST", "expected an object");
  const { model, stream } = body;
  if (typeof model !== "string" || model === "" || model.length > maxModel) {
    throw new GatewayError("INVALID_REQUEST", `expected \`model\` to be a text of 1 to ${maxModel} characters`);
  }
  if (api === "responses") checkResponses(body);
  else if (!isFilledList(body.messages)) {
    throw new GatewayError("INVALID_REQUEST", "expected `messages` to be a list that is not empty");
  }
  if (stream !== undefined && stream !== null && typeof stream !== "boolean") {
    throw new GatewayError("INVALID_REQUEST", "expected `stream` to be true or false");
  }
  return { api, body, model, stream: stream === true };
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
  if ((typeof input === "string" && input !== "") || isFilledList(input)) return;
  throw new GatewayError("INVALID_REQUEST", "expected `input` to be a text or a list, neither of them empty");
}

function isFilledList(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length > 0;
}
