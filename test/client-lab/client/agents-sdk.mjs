// The OpenAI Agents SDK with its MCP server object, as its documentation shows it.
import {
  Agent,
  MCPServerStreamableHttp,
  run,
  setDefaultOpenAIClient,
  setOpenAIAPI,
  setTracingDisabled,
} from "@openai/agents";
import OpenAI from "openai";

const { GATEWAY_URL: url, GATEWAY_KEY: key, MODEL_API: api, MODEL: model } = process.env;
setDefaultOpenAIClient(new OpenAI({ baseURL: `${url}/v1`, apiKey: key }));
setOpenAIAPI(api === "chat" ? "chat_completions" : "responses");
setTracingDisabled(true);

const server = new MCPServerStreamableHttp({
  name: "gateway",
  url: `${url}/mcp`,
  requestInit: { headers: { "X-API-Key": key } },
});
await server.connect();
try {
  const agent = new Agent({ name: "noter", model, mcpServers: [server] });
  const { finalOutput } = await run(agent, "Try the notes.", { maxTurns: 20 });
  process.stdout.write(finalOutput);
} finally {
  await server.close();
}
