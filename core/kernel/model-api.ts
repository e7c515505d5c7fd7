/** The public API that a model request or its answer is written in: chat completions, or messages. */
export type ModelApi = "chat" | "messages";

/** The `tool` of an action that is a request of that API. */
export const modelTool: Readonly<Record<ModelApi, string>> = { chat: "chat.completions", messages: "messages" };
