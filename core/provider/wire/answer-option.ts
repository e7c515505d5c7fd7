/** What the other API's answer says that the provider's does not. */
export interface AnswerOptions {
  /** When the answer was made, in seconds since 1970: the chat API dates its answers. */
  readonly created?: number;
  /** Whether the client of a chat stream asked for `stream_options.include_usage`. */
  readonly includeUsage?: boolean;
}
