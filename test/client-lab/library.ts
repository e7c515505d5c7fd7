import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { node22 } from "../support/node-22.ts";
import { homeEnv, labFile } from "./client-program.ts";

/** What a library is told to ask a model; see `client/question.mjs`. */
export interface Question {
  readonly model: string;
  readonly text: string;
  readonly stream?: boolean;
  /** True: with the tool `weather`, which the program runs. */
  readonly tools?: boolean;
  /** Aborts once so many letters have come. */
  readonly abortAfter?: number;
}

/** What the library made of it. */
export interface Answer {
  /** The last answer; undefined where there is an error. */
  readonly text?: string;
  /** The text as it came, of all streamed answers. */
  readonly pieces: readonly string[];
  /** The arguments of the calls of `weather`. */
  readonly calls: readonly unknown[];
  readonly error?: LibraryError;
}

export interface LibraryError {
  readonly name: string;
  readonly message: string;
  readonly status?: number;
  readonly code?: string;
}

/** A program of `client/` that uses a library, and answers lines. */
export class Library {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #lines: AsyncIterator<string>;
  readonly #home: string;
  #said: string = "";

  /** `program`: its name in `client/`. */
  constructor(program: string, env: Readonly<Record<string, string>>) {
    this.#home = mkdtempSync(join(tmpdir(), "client-lab-"));
    this.#child = spawn(node22(), [labFile(`client/${program}.mjs`)], {
      cwd: this.#home,
      env: { ...homeEnv(this.#home), ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.#child.stdin.on("error", () => undefined); // its end shows in what it says
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.#said += chunk.toString();
    });
  }

  /** Asks one question, one at a time. Rejects with the end of what the program said where it ends without an answer. */
  async ask<T>(question: object): Promise<T> {
    this.#child.stdin.write(`${JSON.stringify(question)}\n`);
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error(`expected an answer, got an end: ${this.#said.slice(-4000)}`);
    return JSON.parse(value) as T;
  }

  async stop(): Promise<void> {
    const closed = once(this.#child, "close");
    if (this.#child.kill("SIGKILL")) await closed;
    await rm(this.#home, { recursive: true, force: true });
  }
}
