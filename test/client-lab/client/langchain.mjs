// LangChain with its MCP adapters, as its documentation shows it.
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, createMiddleware, ToolMessage } from "langchain";

const { GATEWAY_URL: url, GATEWAY_KEY: key, MODEL_API: api, MODEL: name } = process.env;
/** Hands what a tool says of its failure to the model; without it the agent ends there. */
const toolErrors = createMiddleware({
  name: "ToolErrors",
  wrapToolCall: async (request, handler) => {
    try {
      return await handler(request);
    } catch (error) {
      return new ToolMessage({ content: error.message, tool_call_id: request.toolCall.id, status: "error" });
    }
  },
});
const mcp = new MultiServerMCPClient({
  mcpServers: { gateway: { transport: "http", url: `${url}/mcp`, headers: { "X-API-Key": key } } },
});
try {
  const model = new ChatOpenAI({
    model: name,
    apiKey: key,
    configuration: { baseURL: `${url}/v1` },
    useResponsesApi: api === "responses",
  });
  const agent = createAgent({ model, tools: await mcp.getTools(), middleware: [toolErrors] });
  const question = { messages: [{ role: "user", content: "Try the notes." }] };
  const { messages } = await agent.invoke(question, { recursionLimit: 50 });
  process.stdout.write(messages.at(-1).text);
} finally {
  await mcp.close();
}
