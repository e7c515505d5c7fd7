import { userInfo } from "node:os";
import { InvalidArgumentError } from "commander";

const longestText = 1_024;

/** Who runs this command, as far as the machine knows. */
export function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`; // a container's user needs no name
  }
}

/** An option's text that goes into a record. */
export function parseText(text: string): string {
  if (text.length > 0 && text.length <= longestText && text.isWellFormed()) return text;
  throw new InvalidArgumentError(`expected 1 to ${longestText} characters`);
}
