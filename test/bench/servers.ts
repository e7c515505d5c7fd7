import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { awaitReady } from "../support/ready-line.ts";

/** A program that listens. */
export interface Server {
  readonly origin: string;
  readonly pid: number;
}

/** Programs of this folder that a bench needs beside it, each in a process of its own. */
export class Servers {
  readonly #children: ChildProcess[] = [];

  /** Resolves once it listens. */
  async start(file: string, ...args: string[]): Promise<Server> {
    const script = fileURLToPath(new URL(file, import.meta.url));
    const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "pipe"], detached: true });
    this.#children.push(child);
    const ready = await awaitReady(child, { ready: true }, 10_000);
    return { origin: `http://127.0.0.1:${ready.port("port")}`, pid: child.pid as number };
  }

  stop(): void {
    for (const child of this.#children) child.kill();
  }
}
