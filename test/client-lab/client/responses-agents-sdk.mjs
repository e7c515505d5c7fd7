// The OpenAI Agents SDK with an agent that has a tool, as its documentation shows it.
import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { answerQuestions, weatherAbout } from "./question.mjs";

const { GATEWAY_URL: url, GATEWAY_KEY: key } = process.env;
setDefaultOpenAIClient(new OpenAI({ baseURL: `${url}/v1`, apiKey: key }));
setOpenAIAPI("responses");
setTracingDisabled(true);
const parameters = z.object({ city: z.string() });

await answerQuestions(async ({ model, text, stream, signal, onText, weather }) => {
  const tools = weather ? [tool({ name: "weather", description: weatherAbout, parameters, execute: weather })] : [];
  const agent = new Agent({ name: "asker", model, tools });
  if (!stream) return (await run(agent, text, { signal })).finalOutput;
  const result = await run(agent, text, { stream: true, signal });
  for await (const { type, data } of result) {
    if (type === "raw_model_stream_event" && data.type === "output_text_delta") onText(data.delta);
  }
  await result.completed;
  return result.finalOutput;
});
