import { readFileSync } from "node:fs";
import type { AbstractLevel } from "abstract-level";
import { isJsonObject, parseKept } from "../action/json.ts";
import { forgetOldest } from "../action/recent-map.ts";
import type { VerifiedExtension } from "../trust/verified-extension.ts";

const maxPassed = 256;
/** Digests of extensions whose own tests passed, in this process or in an earlier one, the latest last. */
const passed = new Set<string>();

/**
 * Returns true where the own tests of an extension have passed: in this process, in an earlier one that `PassedTests` tells of, or
 * when the program was built. Their results follow from its bytes and the program's, so a reload runs the tests of what changed,
 * and a start those of what was not shipped.
 */
export function hasPassed({ digest }: Pick<VerifiedExtension, "digest">): boolean {
  return passed.has(digest) || readBuild()?.passed.includes(digest) === true;
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
/** The build's word on itself. */
export interface BuildRecord {
  /** SHA-256 in hex of the compiled program. */
  readonly digest: string;
  /** Digests of the shipped extensions whose own tests it passed. */
  readonly passed: readonly string[];
}

const buildFile = new URL("../build-record", import.meta.url);

/** Remembers across restarts whose own tests passed. What another build of the program noted counts for nothing. */
export class PassedTests {
  readonly #store: PassedStore;

  constructor(store: PassedStore) {
    this.#store = store;
  }

  /** Counts what earlier processes of this build remembered. */
  async recall(): Promise<void> {
    for (const digest of await this.#read()) passed.add(digest);
  }

  /** Stores what counts in this process, where that is more than what is stored. */
  async remember(): Promise<void> {
    const build = readBuild()?.digest;
    const known = new Set(await this.#read());
    if (build === undefined || [...passed].every((digest) => known.has(digest))) return;
    await this.#store.put(key, JSON.stringify({ build, digests: [...passed] }));
  }

  async #read(): Promise<readonly string[]> {
    const build = readBuild()?.digest;
    const kept = parseKept((await this.#store.get(key)) ?? "");
    if (build === undefined || !isJsonObject(kept) || kept.build !== build || !Array.isArray(kept.digests)) return [];
    return kept.digests.filter((digest) => typeof digest === "string").slice(-maxPassed);
  }
}

/** Undefined until it is asked for: the build itself removes the record of an earlier one first. */
let build: BuildRecord | null | undefined;

/** Returns null where the program was not built whole: nobody can say then whether it is the one that ran the tests. */
function readBuild(): BuildRecord | null {
  if (build === undefined) {
    try {
      build = JSON.parse(readFileSync(buildFile, "utf8")) as BuildRecord;
    } catch {
      build = null;
    }
  }
  return build;
}
