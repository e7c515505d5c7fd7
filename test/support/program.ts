import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

/** What a program said, and how it ended. */
export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end; `more` is added to the environment. Rejects where it is not installed. */
export async function runProgram(
  command: string,
  args: readonly string[],
  input: string = "",
  more: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const child = spawn(command, args, { stdio: "pipe", env: { ...process.env, ...more } });
  const closed = once(child, "close");
  child.stdin.on("error", () => undefined); // it may end without having read all
  child.stdin.end(input);
  const [[code], stdout, stderr] = await Promise.all([closed, text(child.stdout), text(child.stderr)]);
  return { code: code as number | null, stdout, stderr };
}
