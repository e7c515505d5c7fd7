import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { repositoryRoot } from "../check/source-tree.ts";

/** Longer inputs are not worth a place in the repository. */
const maxBytes = 768;
/** Inputs kept of one parser. */
const maxKept = 24;

/**
 * Inputs that earlier runs found, one for each way in which a parser refuses: `test/fixture/fuzz/<parser>.json`, base64 by
 * reason. With `FUZZ_KEEP` set, those of a run are added to the file.
 */
export class KeptInputs {
  readonly #path: string;
  readonly #byReason: Map<string, string>;

  constructor(parser: string) {
    this.#path = join(repositoryRoot, "test/fixture/fuzz", `${parser.replaceAll(" ", "-").toLowerCase()}.json`);
    const text = existsSync(this.#path) ? readFileSync(this.#path, "utf8") : "{}";
    this.#byReason = new Map(Object.entries(JSON.parse(text) as Readonly<Record<string, string>>));
  }

  get all(): readonly Buffer[] {
    return [...this.#byReason.values()].map((text) => Buffer.from(text, "base64"));
  }

  /** Takes an input that was refused for this reason, where none is kept yet. */
  add(reason: string, input: Buffer): void {
    if (input.length <= maxBytes && this.#byReason.size < maxKept && !this.#byReason.has(reason))
      this.#byReason.set(reason, input.toString("base64"));
  }

  /** Writes what was added, where `FUZZ_KEEP` is set. */
  save(): void {
    if (process.env.FUZZ_KEEP === undefined || this.#byReason.size === 0) return;
    const sorted = [...this.#byReason].toSorted(([a], [b]) => (a < b ? -1 : 1));
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(this.#path, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
  }
}
