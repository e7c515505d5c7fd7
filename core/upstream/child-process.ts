import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { StdioConfig } from "../kernel/upstream-config.ts";

const endGraceMs = 300;
const termGraceMs = 2_000;
const inherited = ["PATH", "HOME", "LANG", "TMPDIR"] as const;

/** Process groups that are alive; a gateway that exits takes them with it. */
const groups: Set<number> = new Set();
process.on("exit", () => {
  for (const group of groups) signalGroup(group, "SIGKILL");
});

/**
 * Starts an upstream's process: no shell, its own process group, and an environment of PATH, HOME, LANG, TMPDIR and
 * what is configured, so that the gateway's own secrets cannot leak. A failed start is an `error` event.
 */
export function startProcess(config: StdioConfig): ChildProcessWithoutNullStreams {
  const child = spawn(config.command, config.args, {
    ...(config.cwd === undefined ? {} : { cwd: config.cwd }),
    env: { ...minimalEnvironment(), ...config.env },
    detached: true,
    shell: false,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const { pid } = child;
  if (pid === undefined) return child;
  groups.add(pid);
  child.once("exit", () => {
    signalGroup(pid, "SIGKILL"); // what it started and left behind
    groups.delete(pid);
  });
  return child;
}

/** Ends the process and its group: end of input, then SIGTERM, then SIGKILL. Resolves when it is gone. */
export async function stopProcess(child: ChildProcessWithoutNullStreams): Promise<void> {
  const { pid } = child;
  if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise<true>((resolve) => child.once("exit", () => resolve(true)));
  child.stdin.end();
  if (await within(exited, endGraceMs)) return;
  signalGroup(pid, "SIGTERM");
  if (await within(exited, termGraceMs)) return;
  signalGroup(pid, "SIGKILL");
  await exited;
}

function minimalEnvironment(): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of inherited) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}

function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Already gone is what we want; what runs as another user by now is not ours to end, and no reason to end ourselves.
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

async function within(event: Promise<true>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const first = await Promise.race([event, late]);
  clearTimeout(timer);
  return first;
}
