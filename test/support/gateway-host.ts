import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { killWithParent } from "./ready-line.ts";

const program = fileURLToPath(new URL("../fixture/gateway-host.js", import.meta.url));
/** Gateways that one process serves before another takes its place. */
const maxRuns = 25;

/** Processes without a gateway, and how many each has served. */
const idle: ChildProcess[] = [];
const runs = new WeakMap<ChildProcess, number>();

/**
 * Starts `gateway <args>` in `cwd` with exactly this environment, in a process that has loaded the program for an earlier
 * gateway, or in a new one. The process is as one of its own: it gets signals and ends where the gateway fails; only a gateway
 * that stops leaves it behind.
 */
export function hostGateway(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): ChildProcess {
  const child = idle.pop() ?? startHost();
  runs.set(child, (runs.get(child) ?? 0) + 1);
  hold(child, true);
  child.send({ args, cwd, env });
  return child;
}

/** Resolves with the exit code of the gateway that the process serves, once it has stopped; its process may go on. */
export function stoppedGateway(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once("message", (message: { readonly code: number }) => {
      if ((runs.get(child) ?? 0) < maxRuns) {
        hold(child, false);
        idle.push(child);
      } else child.disconnect();
      resolve(message.code);
    });
  });
}

function startHost(): ChildProcess {
  const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "pipe", "ipc"], detached: true });
  child.setMaxListeners(0);
  killWithParent(child);
  child.once("exit", () => {
    const at = idle.indexOf(child);
    if (at !== -1) idle.splice(at, 1);
  });
  return child;
}

/** An idle process keeps nobody waiting for its end. */
function hold(child: ChildProcess, isHeld: boolean): void {
  const held = [child, child.channel, child.stdout, child.stderr] as unknown as { ref(): void; unref(): void }[];
  for (const each of held) isHeld ? each?.ref() : each?.unref();
}
