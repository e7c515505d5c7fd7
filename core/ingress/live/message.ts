import { GatewayError } from "../../kernel/error.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { type LiveChannel, liveChannels } from "../../kernel/live-event.ts";
import { type JsonBounds, parseStrictJson } from "../../kernel/strict-json.ts";

/** What a client of `/v1/ws` says. `id` is its own, and comes back with the answer. */
export type ClientMessage = { readonly id: string | null } & (
  | { readonly type: "auth"; readonly key: string }
  | { readonly type: "subscribe" | "unsubscribe"; readonly channels: readonly LiveChannel[] }
  | { readonly type: "evaluate"; readonly action: Json }
  | { readonly type: "ping" }
);

const types = ["auth", "subscribe", "unsubscribe", "evaluate", "ping"] as const;
const longestId = 128;

/** The largest message, in bytes. */
export const mostMessageBytes = 262_144;
const bounds: JsonBounds = { depth: 64, nodes: 50_000, stringLength: mostMessageBytes, reader: "exact" };

/** Throws MALFORMED_JSON, JSON_BOUND or INVALID_REQUEST that says what was expected. */
export function parseClientMessage(bytes: Uint8Array): ClientMessage {
  const message = parseStrictJson(bytes, bounds);
  if (!isJsonObject(message)) throw invalid("expected an object with `type`");
  const unknown = Object.keys(message).find((name) => !["type", "id", "payload"].includes(name));
  if (unknown !== undefined) throw invalid(`expected \`type\`, \`id\`, \`payload\`, got \`${unknown.slice(0, 64)}\``);
  const { type, id = null, payload = {} } = message;
  if (id !== null && (typeof id !== "string" || id.length > longestId))
    throw invalid(`expected \`id\` to be a text of at most ${longestId} characters`);
  if (!isJsonObject(payload)) throw invalid("expected `payload` to be an object");
  const known = types.find((each) => each === type);
  if (known === undefined) throw invalid(`expected \`type\` to be one of ${types.join(", ")}`);
  if (known === "auth") return { type: known, id, key: readText(payload.key, "key") };
  if (known === "evaluate") return { type: known, id, action: payload.action ?? null };
  if (known === "ping") return { type: known, id };
  return { type: known, id, channels: readChannels(payload.channels) };
}

function readText(value: Json | undefined, name: string): string {
  if (typeof value === "string") return value;
  throw invalid(`expected \`payload.${name}\` to be a text`);
}

function readChannels(value: Json | undefined): readonly LiveChannel[] {
  const names: readonly Json[] = Array.isArray(value) ? value : [];
  const channels = liveChannels.filter((channel) => names.includes(channel));
  if (channels.length > 0 && channels.length === names.length) return channels;
  throw invalid(`expected \`payload.channels\` to be a list of ${liveChannels.join(", ")}, each once`);
}

function invalid(detail: string): GatewayError {
  return new GatewayError("INVALID_REQUEST", detail);
}
