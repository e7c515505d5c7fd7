import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { repositoryRoot } from "../check/source-tree.ts";

/** A program as it is started. */
export interface ClientProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const deadlineMs = 120_000;
const labFolder = join(repositoryRoot, "test/client-lab");

/** The path of a file of the lab: one of ours, or below `node_modules`. */
export function labFile(path: string): string {
  return join(labFolder, path);
}

/** The installed version of a package of the lab. */
export function installedVersion(name: string): string {
  const { version } = JSON.parse(readFileSync(labFile(`node_modules/${name}/package.json`), "utf8"));
  return version as string;
}

/**
 * Runs a program in `folder`, its home, until it ends, and resolves with its output. Rejects with the end of what it said
 * where it fails or takes more than two minutes; nothing of it is left running then.
 */
export async function runClient({ command, args, env }: ClientProgram, folder: string): Promise<string> {
  const child = spawn(command, args, {
    cwd: folder,
    env: { ...homeEnv(folder), ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const timer = setTimeout(() => process.kill(-(child.pid ?? 0), "SIGKILL"), deadlineMs);
  const ended = new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  try {
    const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
    if (code !== 0) throw new Error(`expected exit code 0, got ${code}: ${`${stdout}${stderr}`.slice(-4000)}`);
    return stdout;
  } finally {
    clearTimeout(timer);
  }
}

/** What every client gets of the environment: nothing of who runs the tests. */
export function homeEnv(folder: string): Readonly<Record<string, string>> {
  return { PATH: process.env.PATH ?? "", HOME: folder, LANG: "C.UTF-8", TMPDIR: folder };
}
