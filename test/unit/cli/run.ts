import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { nodeFlags } from "../../support/node-flags.ts";

export const program: string = fileURLToPath(new URL("../../../core/cli/main.js", import.meta.url));

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `gateway <args>` as a process with exactly this environment, and `stdin` where it is given, to its end. */
export function runGateway(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdin?: string | Buffer,
): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [...nodeFlags, program, ...args],
      { env, timeout: 60_000 },
      (_error, stdout, stderr) => {
        if (child.exitCode === null) reject(new Error(`expected an exit code, got the signal ${child.signalCode}`));
        else resolve({ code: child.exitCode, stdout, stderr });
      },
    );
    if (stdin === undefined) return;
    child.stdin?.on("error", () => undefined); // who refuses it does not read it to its end
    child.stdin?.end(stdin);
  });
}
