import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type * as CedarModule from "@cedar-policy/cedar-wasm/nodejs";
import { requireOptional } from "../../config/optional-package.ts";
import { loadAnew } from "../../fact/parser-instance.ts";

export type Cedar = typeof CedarModule;
export type { CedarValueJson, DetailedError, EntityJson, PolicyJson } from "@cedar-policy/cedar-wasm/nodejs";

const packageName = "@cedar-policy/cedar-wasm/nodejs";

/** Kept, so that the engine finds the code of later instances compiled. */
let compiled: Promise<unknown> | undefined;

/**
 * Opens Cedar with a state of its own. A trap leaves its memory unreliable, and what it has parsed stays in it, so that every
 * folder of policies has an instance to itself, which is given up with it. Rejects with ENGINE_INVALID where its package is
 * not installed.
 */
export async function openCedar(): Promise<Cedar> {
  requireOptional("cedar", "an engine `cedar` or `cedar-agent`", "ENGINE_INVALID");
  compiled ??= compile();
  await compiled;
  return loadAnew(packageName) as Cedar;
}

/** Compiles off the main thread what the package would compile on it. */
async function compile(): Promise<unknown> {
  const file = join(dirname(createRequire(import.meta.url).resolve(packageName)), "cedar_wasm_bg.wasm");
  return WebAssembly.compile(await readFile(file));
}
