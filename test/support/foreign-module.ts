import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A module that others made, and what the reference host answers when `function` is called. */
export interface ForeignModule {
  readonly file: string;
  readonly sha256: string;
  /** The export to call; undefined for a module of another ABI. */
  readonly function?: string;
  readonly answer?: string;
  readonly kind?: string;
}

export interface ForeignIndex {
  readonly input: string;
  readonly config: Readonly<Record<string, string>>;
  readonly modules: readonly ForeignModule[];
}

/** The folder of foreign modules; undefined where this machine has none. */
export const foreignFolder = process.env.EXTISM_MODULES;

export function readForeignIndex(folder: string): ForeignIndex {
  return JSON.parse(readFileSync(join(folder, "index.json"), "utf8")) as ForeignIndex;
}
