import type { ModelApi } from "../../core/action/model-api.ts";
import { scriptedServer } from "../e2e/client/server-program.ts";
import { askModel, type Told } from "../e2e/model/ask.ts";
import { type ModelWorld, openModelWorld } from "../e2e/model/world.ts";
import { type Script, scripts } from "../fixture/model-provider.ts";
import { type FirstParty, folderOf } from "../support/first-party.ts";
import { connectClient, type McpClient } from "../support/mcp-client.ts";

export const card = "4111 1111 1111 1111";
export const mail = "q7xv2.lmp9@example.com";
export const token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/** A gateway whose shipped plugins redact answers, between a client and a provider and a server that say what they are told. */
export class GuardedSite {
  readonly world: ModelWorld;
  #client: McpClient | undefined;

  private constructor(world: ModelWorld) {
    this.world = world;
  }

  /** `answers`: of the MCP server, by tool and method. */
  static async open(plugins: readonly FirstParty[], answers: object = {}): Promise<GuardedSite> {
    const upstream = JSON.stringify({ name: "scripted", transport: "stdio", ...scriptedServer(answers) });
    const places = plugins.map((name) => JSON.stringify({ path: folderOf(name), phases: ["output"] }));
    const world = await openModelWorld({
      policy: `plugins: [${places.join(", ")}]`,
      more: `upstreams: [${upstream}]`,
    });
    return new GuardedSite(world);
  }

  /** The result of a tool as the client has it, as JSON. */
  async call(tool: string): Promise<string> {
    return JSON.stringify(await (await this.#mcp()).callTool(tool));
  }

  async readResource(uri: string): Promise<string> {
    return JSON.stringify(await (await this.#mcp()).readResource(uri));
  }

  /** What the client gets of an answer that comes whole. */
  whole(api: ModelApi, answer: object): Promise<Told> {
    return this.#ask(api, false, scripts.says(200, answer));
  }

  /** What the client gets of an answer in these events. */
  streamed(api: ModelApi, events: readonly object[]): Promise<Told> {
    const text = events.map((event) => {
      const name = "type" in event ? `event: ${String(event.type)}\n` : "";
      return `${name}data: ${JSON.stringify(event)}\n\n`;
    });
    return this.#ask(api, true, scripts.streams([...text, ...(api === "chat" ? ["data: [DONE]\n\n"] : [])]));
  }

  async stop(): Promise<void> {
    await this.#client?.close();
    await this.world.stop();
  }

  #ask(api: ModelApi, stream: boolean, script: Script): Promise<Told> {
    this.world.provider.next(script);
    return askModel(this.world, { api, stream });
  }

  async #mcp(): Promise<McpClient> {
    const { gateway, keys } = this.world;
    const headers = { "x-api-key": keys.agent };
    this.#client ??= await connectClient("v2 modern", { url: `${gateway.url}/mcp`, headers });
    return this.#client;
  }
}

/** A whole answer of the chat API, `changed` in its only choice and beside it. */
export function chatAnswer(message: object, choice: object = {}, more: object = {}): object {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_700_000_000,
    model: "open-1",
    choices: [
      { index: 0, message: { role: "assistant", refusal: null, ...message }, finish_reason: "stop", ...choice },
    ],
    ...more,
  };
}

/** A stream of the chat API: each delta a chunk of its own, with what `more` and `choice` add to each of them. */
export function chatChunks(deltas: readonly object[], choice: object = {}, more: object = {}): readonly object[] {
  const chunk = (delta: object, finish: string | null = null): object => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: "open-1",
    choices: [{ index: 0, delta, finish_reason: finish, ...choice }],
    ...more,
  });
  return [...deltas.map((delta) => chunk(delta)), chunk({}, "stop")];
}

/** A stream of the messages API with these texts, each a block of its own. */
export function messageEvents(texts: readonly string[], message: object = {}): readonly object[] {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const head = { id: "msg_1", type: "message", role: "assistant", model: "claude-1", content: [], stop_reason: null };
  return [
    { type: "message_start", message: { ...head, usage, ...message } },
    ...texts.flatMap((text, index) => [
      { type: "content_block_start", index, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index, delta: { type: "text_delta", text } },
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
    { type: "message_stop" },
  ];
}

/** A whole answer of the messages API. */
export function messageAnswer(content: readonly object[], more: object = {}): object {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const head = { id: "msg_1", type: "message", role: "assistant", model: "claude-1", stop_reason: "end_turn" };
  return { ...head, content, usage, ...more };
}

/** A whole answer of the responses API. */
export function responseAnswer(content: readonly object[], more: object = {}): object {
  const item = { id: "msg_1", type: "message", role: "assistant", status: "completed", content };
  return { id: "resp_1", object: "response", created_at: 1_700_000_000, model: "resp-1", output: [item], ...more };
}
