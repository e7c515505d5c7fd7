import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { BundleReport } from "../../core/evidence/bundle/verify.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import type { Presented } from "./forgery.ts";

/** What both verifiers say, as far as they must agree. */
export type Said = Omit<BundleReport, "checks">;

/** `sdk/evidence/verify.py`, started once for many bundles. */
export class PythonVerifier {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #lines: AsyncIterator<string>;
  #complaint = "";

  private constructor(child: ChildProcess, folder: string) {
    this.#child = child;
    this.#folder = folder;
    if (child.stdout === null || child.stderr === null) throw new TypeError("expected the child's output to be piped");
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stderr.on("data", (text) => {
      this.#complaint += String(text);
    });
  }

  static async start(): Promise<PythonVerifier> {
    const folder = await mkdtemp(join(tmpdir(), "verifier-"));
    const driver = join(repositoryRoot, "test", "support", "verify-driver.py");
    const child = spawn("python3", [driver, join(repositoryRoot, "sdk", "evidence", "verify.py")]);
    return new PythonVerifier(child, folder);
  }

  /** Throws where the verifier died of the bundle. */
  async judge({
    bundle,
    keys,
    witness = null,
  }: Omit<Presented, "witness"> & { witness?: string | null }): Promise<Said> {
    const path = join(this.#folder, "bundle.jsonl");
    await writeFile(path, bundle);
    this.#child.stdin?.write(`${JSON.stringify({ bundle: path, keys, witness })}\n`);
    const { done, value } = await this.#lines.next();
    if (done === true) throw new Error(`verify.py: ${this.#complaint}`);
    return JSON.parse(value) as Said;
  }

  async stop(): Promise<void> {
    this.#child.stdin?.end();
    await rm(this.#folder, { recursive: true });
  }
}
