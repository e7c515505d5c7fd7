import type { ActionEnvelope } from "../action/envelope.ts";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { type ModelApi, type ModelPurpose, modelTool } from "../action/model-api.ts";
import type { ResponseOptions } from "./wire/content.ts";
import { type HintSink, translateRequest } from "./wire/translate.ts";

/** One provider and model that can serve a request. */
export interface Candidate {
  readonly provider: string;
  /** The provider's name for the model. */
  readonly model: string;
  /** The API that the provider speaks. */
  readonly api: ModelApi;
  /** `<provider>/<model>`: the target of the action. */
  readonly target: string;
}

export interface ModelCall {
  readonly candidate: Candidate;
  /** The client's. */
  readonly api: ModelApi;
  /** Absent: an answer. */
  readonly purpose?: ModelPurpose;
  readonly stream: boolean;
  /** Aborted when the client disconnects: the provider's connection is freed at once. */
  readonly signal: AbortSignal;
  /** Resolves in a later turn of the event loop: a long request is sent, and a long answer read, over several of them. */
  readonly pause: () => Promise<void>;
  /** The header of that name; undefined where the request is not traced. */
  readonly traceparent?: string | undefined;
}

/** A request as sent to the provider, and the options that its response is translated with. */
interface MadeRequest {
  /** In the provider's API. */
  readonly body: JsonObject;
  readonly headers: Readonly<Record<string, string>>;
  readonly options: ResponseOptions;
}

interface RequestOptions {
  /** Seconds since 1970. */
  readonly created: number;
  readonly dropHints: ReadonlySet<string>;
  readonly onDropped: HintSink;
}

/**
 * Translates the judged request to its provider's API, and adds nothing that was not judged. Throws MODEL_UNTRANSLATABLE, and TypeError where the action is not the call's.
 */
export function makeRequest(
  action: ActionEnvelope,
  call: ModelCall,
  { created, dropHints, onDropped }: RequestOptions,
): MadeRequest {
  const { candidate, api } = call;
  const judged = judgedBody(action, call);
  const body = { ...judged, model: candidate.model };
  return {
    body: translateRequest(api, candidate.api, body, dropHints, onDropped),
    headers: { ...passedHeaders(action, call), ...traceHeader(call) },
    options: { created, includeUsage: includesUsage(judged), request: judged },
  };
}

function judgedBody(
  { protocol, tool, target, arguments: body }: ActionEnvelope,
  { candidate, api, purpose = "answer", stream }: ModelCall,
): JsonObject {
  const called = modelTool(api, purpose);
  if (protocol !== "model" || tool !== called || target !== candidate.target) {
    throw new TypeError(`call: judged for ${protocol} ${tool} \`${target}\`, got ${called} \`${candidate.target}\``);
  }
  if (!isJsonObject(body)) throw new TypeError("call: expected arguments to be an object");
  if ((purpose !== "count" && body.stream === true) !== stream)
    throw new TypeError("call: judged for another kind of answer");
  return body;
}

function includesUsage({ stream_options: options }: JsonObject): boolean {
  return isJsonObject(options) && options.include_usage === true;
}

function traceHeader({ traceparent }: ModelCall): Readonly<Record<string, string>> {
  return traceparent === undefined ? {} : { traceparent };
}

/** The judged headers of the client, for a provider of the same API: never credentials, cookies or addresses. */
function passedHeaders(
  { continuation }: ActionEnvelope,
  { candidate, api }: ModelCall,
): Readonly<Record<string, string>> {
  if (candidate.api !== "messages" || api !== "messages") return {};
  const passed = ["anthropic-version", "anthropic-beta"].map((name) => [name, continuation?.[name]] as const);
  return Object.fromEntries(passed.filter((entry): entry is readonly [string, string] => typeof entry[1] === "string"));
}

/** Keeps the key of one provider out of responses to clients. */
export class ProviderSecret {
  readonly #key: string | null;

  constructor(key: string | null) {
    this.#key = key;
  }

  /** Returns the value with the key replaced. */
  remove(value: Json): Json {
    if (this.#key === null) return value;
    // No character of a key is ever escaped in JSON.
    return JSON.parse(JSON.stringify(value).replaceAll(this.#key, "[key]")) as Json;
  }

  /** Throws PROVIDER_INVALID for bytes that contain the key. */
  refuse(bytes: Uint8Array): void {
    if (this.#key === null || !asBuffer(bytes).includes(this.#key)) return;
    throw new GatewayError("PROVIDER_INVALID", "expected an answer without the gateway's own key, got one with it");
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
