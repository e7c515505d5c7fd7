import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { FolderContent } from "./evidence-content.ts";

/**
 * What becomes of a damaged folder. `kept`: everything is there. `found`: `verify` says what is lost.
 * `refused`: the start does. `ended`: the database ended the process. `silent`: something is lost and nobody said so.
 */
export interface FolderEnd {
  readonly end: "kept" | "found" | "refused" | "ended" | "silent";
  readonly said: string;
}

interface Running {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly lines: Interface;
  readonly closed: Promise<undefined>;
}

const program = fileURLToPath(new URL("./evidence-check-child.js", import.meta.url));

/** Judges folders in a process of its own, a new one whenever the last was ended: that is a verdict, too. */
export class FolderJudge {
  readonly #expected: string;
  #process: Running | null = null;
  #stderr = "";

  constructor(expected: FolderContent) {
    this.#expected = JSON.stringify(expected);
  }

  async judge(dir: string): Promise<FolderEnd> {
    this.#process ??= this.#start();
    const { child, lines, closed } = this.#process;
    const answered = new Promise<string>((resolve) => lines.once("line", resolve));
    child.stdin.write(`${dir}\n`);
    const line = await Promise.race([answered, closed]);
    if (line !== undefined) return JSON.parse(line) as FolderEnd;
    this.#process = null;
    return { end: child.signalCode === "SIGABRT" ? "ended" : "silent", said: this.#stderr };
  }

  async close(): Promise<void> {
    this.#process?.child.stdin.end();
    await this.#process?.closed;
  }

  #start(): Running {
    const child = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "pipe"] });
    this.#stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    child.stdin.write(`${this.#expected}\n`);
    return { child, lines: createInterface(child.stdout), closed: once(child, "close").then(() => undefined) };
  }
}
