import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../core/action/json.ts";
import { tool } from "../e2e/client/hostile-tool.ts";
import { Reviewer } from "../e2e/client/reviewer.ts";
import { catalogServer } from "../e2e/client/server-program.ts";
import { type Logged, openWorld, type World } from "../e2e/client/world.ts";
import { ModelProvider } from "../fixture/model-provider.ts";
import { modelOf } from "./stand-in.ts";
import { Task } from "./task.ts";

/** One gateway for one client: before an MCP server and a model provider, which keep a log each, and with a reviewer. */
export interface Lab {
  readonly world: World;
  readonly provider: ModelProvider;
  readonly task: Task;
  /** The calls that reached the MCP server. */
  calls(): readonly NonNullable<Logged["params"]>[];
  stop(): Promise<void>;
}

/** What the gateway shows the provider, and clients do not have. */
export const providerKey = "of-the-provider-alone";

/** How long a held call waits for its review. */
const holdSeconds = 5;

const rules = `rules:
  - { id: test.see, title: All may be seen, decision: allow, match: { phase: [list, output] } }
  - { id: test.think, title: Models may be asked, decision: allow, match: { phase: input, protocol: model } }
  - { id: test.read, title: Reading is allowed, decision: allow, match: { phase: input, tool: [tools/list, subscriptions/listen, read_note] } }
  - { id: test.write, title: Writing is reviewed, decision: review, match: { phase: input, tool: write_note }, message: writes }
  - { id: test.delete, title: Nothing is deleted, decision: block, match: { phase: input, tool: delete_note }, message: deletes }
`;

const text = { type: "string" };
const tools = [
  tool("read_note", noteTool("Reads a note.", { title: text })),
  tool("write_note", noteTool("Writes a note.", { title: text, text })),
  tool("delete_note", noteTool("Deletes a note.", { title: text })),
];

function noteTool(description: string, properties: JsonObject): JsonObject {
  return { description, inputSchema: { type: "object", properties, required: Object.keys(properties) } };
}

export async function openLab(): Promise<Lab> {
  const provider = await ModelProvider.start();
  try {
    const world = await openWorld({
      servers: (folder) => {
        const file = join(folder, "tools.json");
        writeFileSync(file, JSON.stringify(tools));
        return { notes: catalogServer(file) };
      },
      rules,
      more: configOf(provider),
      env: { PROVIDER_KEY: providerKey },
    });
    const reviewer = new Reviewer(world);
    const writes = (): number => world.calls("notes").filter(({ params }) => params?.name === "write_note").length;
    const task = new Task({
      writes,
      awaitPending: () => reviewer.awaitPending(),
      list: () => reviewer.list(),
      approve: (id) => reviewer.approve(id),
      deny: (id, comment) => reviewer.deny(id, comment),
    });
    provider.script = modelOf(task);
    return {
      world,
      provider,
      task,
      calls: () => world.calls("notes").flatMap(({ params }) => (params === undefined ? [] : [params])),
      stop: () => world.stop().finally(() => provider.stop()),
    };
  } catch (error) {
    provider.stop();
    throw error;
  }
}

function configOf(provider: ModelProvider): string {
  return `
approvals: { hold_seconds: ${holdSeconds} }
sessions: { review_flood: { reviews: 0 }, risk: { kill_at: 0 } }
providers:
  - name: open
    type: openai
    base_url: ${provider.baseUrl("openai")}
    api_key_env: PROVIDER_KEY
    models: [chat-model]
  - name: claude
    type: anthropic
    base_url: ${provider.baseUrl("anthropic")}
    api_key_env: PROVIDER_KEY
    models: [messages-model]
  - name: answering
    type: responses
    base_url: ${provider.baseUrl("responses")}
    api_key_env: PROVIDER_KEY
    models: [responses-model]
model_gateway:
  tool_passthrough: client
  routes:
    - { model: chat-model, providers: [{ name: open }] }
    - { model: messages-model, providers: [{ name: claude }] }
    - { model: responses-model, providers: [{ name: answering }] }
`;
}
