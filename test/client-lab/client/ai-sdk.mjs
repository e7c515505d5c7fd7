// The AI SDK with its own MCP client, streaming, as its documentation shows it.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createMCPClient } from "@ai-sdk/mcp";
import { createOpenAI } from "@ai-sdk/openai";
import { isStepCount, streamText } from "ai";

const { GATEWAY_URL: url, GATEWAY_KEY: key, MODEL_API: api, MODEL: model } = process.env;
const open = createOpenAI({ baseURL: `${url}/v1`, apiKey: key });
const models = {
  chat: () => open.chat(model),
  responses: () => open(model),
  messages: () => createAnthropic({ baseURL: `${url}/v1`, apiKey: key })(model),
};

const mcp = await createMCPClient({ transport: { type: "http", url: `${url}/mcp`, headers: { "X-API-Key": key } } });
try {
  const result = streamText({
    model: models[api](),
    tools: await mcp.tools(),
    stopWhen: isStepCount(20),
    prompt: "Try the notes.",
    onError: ({ error }) => {
      throw error;
    },
  });
  for await (const text of result.textStream) process.stdout.write(text);
} finally {
  await mcp.close();
}
