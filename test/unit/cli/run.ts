import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

export const program: string = fileURLToPath(new URL("../../../core/cli/main.js", import.meta.url));

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `gateway <args>` as a process with exactly this environment, to its end. */
export function runGateway(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [program, ...args], { env, timeout: 60_000 }, (_error, stdout, stderr) => {
      if (child.exitCode === null) reject(new Error(`expected an exit code, got the signal ${child.signalCode}`));
      else resolve({ code: child.exitCode, stdout, stderr });
    });
  });
}
