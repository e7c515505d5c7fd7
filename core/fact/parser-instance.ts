import { createRequire } from "node:module";
import { dirname, sep } from "node:path";
import { performance } from "node:perf_hooks";
import { Allowance } from "../action/token-bucket.ts";

const replacementsPerMinute = 3;
/** Some of what an instance holds stays in memory for good. */
const maxReplacements = 30;

/**
 * The instance of a parser in WASM. One that trapped or ran out of stack is dropped, because its memory cannot be relied on, and
 * another one is made: at most 3 in a minute, 30 altogether. Without an instance nothing is read.
 */
export class ParserInstance<Parser> {
  readonly #make: () => Promise<Parser>;
  readonly #clock: () => number;
  readonly #allowance: Allowance;
  #left = maxReplacements;
  #wasLoaded = false;
  #current: Parser | undefined;
  #pending: Promise<void> | undefined;

  /** `clock`: monotonic milliseconds. */
  constructor(make: () => Promise<Parser>, clock: () => number = () => performance.now()) {
    this.#make = make;
    this.#clock = clock;
    this.#allowance = new Allowance(replacementsPerMinute, clock());
  }

  /** Resolves once there is an instance; rejects where it cannot be made. */
  async load(): Promise<void> {
    if (this.#current === undefined) await (this.#pending ?? this.#start());
  }

  /**
   * Returns what `parse` returns; null without an instance, and where it throws. An error that `isRefusal` does not know is a
   * trap: the next instance is made meanwhile.
   */
  use<Result>(
    parse: (parser: Parser) => Result,
    isRefusal: (error: unknown, parser: Parser) => boolean,
  ): Result | null {
    const parser = this.#current;
    if (parser === undefined) {
      if (this.#wasLoaded) this.#replace();
      return null;
    }
    try {
      return parse(parser);
    } catch (error) {
      if (!isRefusal(error, parser)) {
        this.#current = undefined;
        this.#replace();
      }
      return null;
    }
  }

  #replace(): void {
    const now = this.#clock();
    if (this.#pending !== undefined || this.#left === 0 || this.#allowance.left(now) < 1) return;
    this.#allowance.take(1, now);
    this.#left -= 1;
    // Where it fails, the next text tries again, within the same bounds.
    this.#start().catch(() => undefined);
  }

  #start(): Promise<void> {
    const pending = this.#make().then((made) => {
      this.#current = made;
      this.#wasLoaded = true;
    });
    this.#pending = pending.finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }
}

/** Loads a CommonJS package anew, with a state of its own: what an earlier load of it holds is left to the collector. */
export function loadAnew(name: string): unknown {
  const require = createRequire(import.meta.url);
  const folder = dirname(require.resolve(name)) + sep;
  for (const path of Object.keys(require.cache)) if (path.startsWith(folder)) delete require.cache[path];
  return require(name);
}
