import { InvalidArgumentError } from "commander";

/** A session's id as an argument. */
export function parseSessionId(text: string): string {
  if (/^[A-Za-z0-9_-]{1,256}$/.test(text)) return text;
  throw new InvalidArgumentError("expected a session's id, like `session-v1-…`");
}
