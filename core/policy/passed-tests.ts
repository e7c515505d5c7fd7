import { readFile } from "node:fs/promises";
import type { AbstractLevel } from "abstract-level";
import { isJsonObject, parseKept } from "../action/json.ts";
import { forgetOldest } from "../action/recent-map.ts";
import type { VerifiedExtension } from "../trust/verified-extension.ts";

const maxPassed = 256;
/** Digests of extensions whose own tests passed, in this process or in an earlier one, the latest last. */
const passed = new Set<string>();

/**
 * Returns true where the own tests of an extension have passed. Their results follow from its bytes and the program's, so a
 * reload runs the tests of what changed, and so does a start with `PassedTests`.
 */
export function hasPassed({ digest }: VerifiedExtension): boolean {
  return passed.has(digest);
}

/** Notes that the own tests of an extension passed, all of them. */
export function notePassed({ digest }: VerifiedExtension): void {
  passed.add(digest);
  forgetOldest(passed, maxPassed);
}

/** The part of the database interface that is used here. */
type PassedStore = AbstractLevel<string | Buffer | Uint8Array, string, string>;

/** Contains no `/`: keys with one belong to the tenant before it. */
const key = "own-tests-passed";
/** Holds the digest of the compiled program; the build writes it. */
const buildFile = new URL("../build-digest", import.meta.url);

/** Remembers across restarts whose own tests passed. What another build of the program noted counts for nothing. */
export class PassedTests {
  readonly #store: PassedStore;

  constructor(store: PassedStore) {
    this.#store = store;
  }

  /** Counts what earlier processes of this build remembered. */
  async recall(): Promise<void> {
    for (const digest of await this.#read(await readBuild())) passed.add(digest);
  }

  /** Stores what counts in this process, where that is more than what is stored. */
  async remember(): Promise<void> {
    const build = await readBuild();
    const known = new Set(await this.#read(build));
    if (build === null || [...passed].every((digest) => known.has(digest))) return;
    await this.#store.put(key, JSON.stringify({ build, digests: [...passed] }));
  }

  async #read(build: string | null): Promise<readonly string[]> {
    if (build === null) return [];
    const kept = parseKept((await this.#store.get(key)) ?? "");
    if (!isJsonObject(kept) || kept.build !== build || !Array.isArray(kept.digests)) return [];
    return kept.digests.filter((digest) => typeof digest === "string").slice(-maxPassed);
  }
}

/** Returns null where the program was not built whole: nobody can say then whether it is the one that ran the tests. */
async function readBuild(): Promise<string | null> {
  return readFile(buildFile, "utf8").catch(() => null);
}
