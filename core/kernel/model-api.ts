/** The public API that a model request or its answer is written in: chat completions, or messages. */
export type ModelApi = "chat" | "messages";
