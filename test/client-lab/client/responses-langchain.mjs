// LangChain's model with tools bound to it, and the loop around it that its documentation shows.
import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";
import { answerQuestions, weatherAbout } from "./question.mjs";

const { GATEWAY_URL: url, GATEWAY_KEY: key } = process.env;
const about = { name: "weather", description: weatherAbout, schema: z.object({ city: z.string() }) };

await answerQuestions(async ({ model: name, text, stream, signal, onText, weather }) => {
  const model = new ChatOpenAI({
    model: name,
    apiKey: key,
    configuration: { baseURL: `${url}/v1` },
    useResponsesApi: true,
  });
  const tools = weather ? [tool(weather, about)] : [];
  const bound = weather ? model.bindTools(tools) : model;
  const turn = async (messages) => {
    if (!stream) return bound.invoke(messages, { signal });
    let whole;
    for await (const chunk of await bound.stream(messages, { signal })) {
      onText(chunk.text);
      whole = whole?.concat(chunk) ?? chunk;
    }
    return whole;
  };
  for (const messages = [new HumanMessage(text)]; ; ) {
    const message = await turn(messages);
    if (!message.tool_calls?.length) return message.text;
    messages.push(message);
    for (const call of message.tool_calls) messages.push(await tools[0].invoke(call));
  }
});
