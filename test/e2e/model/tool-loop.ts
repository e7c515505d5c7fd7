import Anthropic from "anthropic-1";
import OpenAI from "openai";
import type { JsonObject } from "../../../core/action/json.ts";
import type { ModelApi } from "../../../core/action/model-api.ts";
import type { McpClient } from "../../support/mcp-client.ts";

/** A call that the model asked for, and what it was told of it. */
export interface LoopedCall {
  readonly name: string;
  readonly text: string;
}

/** Where an agent asks its model, and the tools it has. */
export interface LoopParts {
  readonly url: string;
  readonly key: string;
  readonly label: string;
  readonly tools: McpClient;
}

type Call = (name: string, args: JsonObject) => Promise<string>;

/**
 * An agent as its makers write it: asks a model through its official client, makes the calls that it wants over MCP, and
 * tells it what came of them, until it wants none. Returns the calls.
 */
export async function runAgent(api: ModelApi, task: string, parts: LoopParts): Promise<readonly LoopedCall[]> {
  const calls: LoopedCall[] = [];
  const names = (await parts.tools.listTools()).map(({ name }) => name);
  const call: Call = async (name, args) => {
    const { content } = await parts.tools.callTool(name, args);
    const text = content.map((each) => each.text ?? "").join("");
    calls.push({ name, text });
    return text;
  };
  await (api === "chat" ? runChat : runMessages)(parts, task, names, call);
  return calls;
}

async function runChat(
  { url, key, label }: LoopParts,
  task: string,
  names: readonly string[],
  call: Call,
): Promise<void> {
  const headers = { "x-gateway-session-id": label };
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, defaultHeaders: headers });
  const tools = names.map((name) => ({
    type: "function" as const,
    function: { name, parameters: { type: "object" } },
  }));
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: task }];
  for (;;) {
    const { choices } = await client.chat.completions.create({ model: "chat-model", messages, tools });
    const message = choices[0]?.message;
    if (message?.tool_calls === undefined) return;
    messages.push(message);
    for (const each of message.tool_calls) {
      if (each.type !== "function") throw new Error(`expected a call of a function, got ${each.type}`);
      const content = await call(each.function.name, JSON.parse(each.function.arguments) as JsonObject);
      messages.push({ role: "tool", tool_call_id: each.id, content });
    }
  }
}

async function runMessages(
  { url, key, label }: LoopParts,
  task: string,
  names: readonly string[],
  call: Call,
): Promise<void> {
  const headers = { "x-gateway-session-id": label };
  const client = new Anthropic({ baseURL: url, apiKey: key, defaultHeaders: headers });
  const tools = names.map((name) => ({ name, input_schema: { type: "object" as const } }));
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: task }];
  for (;;) {
    const { content } = await client.messages.create({ model: "messages-model", max_tokens: 100, messages, tools });
    const wanted = content.filter((block) => block.type === "tool_use");
    if (wanted.length === 0) return;
    messages.push({ role: "assistant", content });
    const results: Anthropic.ToolResultBlockParam[] = [];
    for (const { id, name, input } of wanted) {
      results.push({ type: "tool_result", tool_use_id: id, content: await call(name, input as JsonObject) });
    }
    messages.push({ role: "user", content: results });
  }
}
