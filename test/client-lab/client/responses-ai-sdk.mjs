// The AI SDK's responses model, whose loop runs the tools, as its documentation shows it.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";
import { answerQuestions, weatherAbout } from "./question.mjs";

const { GATEWAY_URL: url, GATEWAY_KEY: key } = process.env;
const open = createOpenAI({ baseURL: `${url}/v1`, apiKey: key });
const inputSchema = z.object({ city: z.string() });

await answerQuestions(async ({ model, text, stream, signal, onText, weather }) => {
  const options = {
    model: open.responses(model),
    prompt: text,
    tools: weather && { weather: tool({ description: weatherAbout, inputSchema, execute: weather }) },
    stopWhen: isStepCount(5),
    abortSignal: signal,
    providerOptions: { openai: { store: false } }, // else it refers to answers by their ids
  };
  if (!stream) return (await generateText(options)).text;
  const result = streamText({ ...options, onError: () => undefined });
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "text-delta") onText(part.text);
  }
  return result.text;
});
