import type { Json, JsonObject } from "../../../kernel/json.ts";
import { textContent, textsOf } from "../content.ts";
import { Members, untranslatable } from "../member.ts";
import { toolChoice, toolDefinition } from "./tool.ts";
import { chatMessages } from "./turn.ts";

/** How many texts a chat request may name to stop at. */
const mostStops = 4;

/** A messages request as a chat request; MODEL_UNTRANSLATABLE names the first member that has no equivalent. */
export function toChatRequest(body: JsonObject): JsonObject {
  const request = new Members(body, "", "INVALID_REQUEST");
  const system = textsOf(request, "system");
  const messages = request.items("messages").flatMap(chatMessages);
  const limit = request.number("max_tokens");
  if (limit === undefined) throw request.expected("max_tokens", "a number");
  const translated: Record<string, Json> = {
    model: request.requiredString("model"),
    max_completion_tokens: limit,
    messages: system.length === 0 ? messages : [{ role: "system", content: textContent(system) }, ...messages],
    ...sampling(request),
    ...tools(request),
  };
  const user = userOf(request);
  if (user !== undefined) translated.user = user;
  streaming(request, translated);
  neutral(request);
  request.end();
  return translated;
}

function sampling(request: Members): JsonObject {
  const temperature = request.number("temperature");
  const topP = request.number("top_p");
  const stop = request.list("stop_sequences");
  if (stop !== undefined && stop.length > mostStops) {
    throw untranslatable("stop_sequences", `expected at most ${mostStops}, got ${stop.length}`);
  }
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(stop === undefined || stop.length === 0 ? {} : { stop }),
  };
}

function tools(request: Members): JsonObject {
  const definitions = request.items("tools").map(toolDefinition);
  return {
    ...(definitions.length === 0 ? {} : { tools: definitions }),
    ...toolChoice(request.members("tool_choice")),
  };
}

function userOf(request: Members): string | undefined {
  const metadata = request.members("metadata");
  const user = metadata?.string("user_id");
  metadata?.end();
  return user;
}

/** A messages client is always told what was counted, so the provider is always asked. */
function streaming(request: Members, translated: Record<string, Json>): void {
  const stream = request.boolean("stream");
  if (stream !== undefined) translated.stream = stream;
  if (stream === true) translated.stream_options = { include_usage: true };
}

function neutral(request: Members): void {
  request.neutral("service_tier", "auto");
  request.neutral("output_config");
  const thinking = request.members("thinking");
  if (thinking !== undefined && thinking.string("type") !== "disabled") throw untranslatable("thinking");
  thinking?.end();
}
