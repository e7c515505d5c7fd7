import { mkdir, readFile, writeFile } from "node:fs/promises";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { contentDigest } from "../action/canonical-json.ts";
import { isJsonObject, type Json } from "../action/json.ts";
import type { Origin } from "../plugin/wasm/body-meter.ts";
import { meterModule } from "../plugin/wasm/meter.ts";
import { parseModule } from "../plugin/wasm/module-parser.ts";

/** Returns the place in the author's source of the innermost of some instructions, `file:line:column`. */
export type Locate = (offsets: readonly number[]) => string | undefined;

/** In a folder that is neither signed nor loaded. */
const mapFile = join("build", "plugin.wasm.map");
const digestMember = "x_module_digest";
const maxLookaheadBytes = 64;

/** Stores the compiler's source map of a module, for error messages. */
export async function writeSourceMap(folder: string, map: string, module: Uint8Array): Promise<void> {
  const content: Json = JSON.parse(map);
  if (!isJsonObject(content)) throw new TypeError("writeSourceMap: expected a source map");
  await mkdir(join(folder, "build"), { recursive: true });
  await writeFile(join(folder, mapFile), JSON.stringify({ ...content, [digestMember]: contentDigest(module) }));
}

/** Reads the source map of a module. Without one for exactly this module, no place is found. */
export async function readSourceMap(folder: string, module: Uint8Array): Promise<Locate> {
  try {
    const map = JSON.parse(await readFile(join(folder, mapFile), "utf8"));
    if (map[digestMember] !== contentDigest(module)) return () => undefined;
    const sourceMap = new SourceMap(map);
    return (offsets) => locate(sourceMap, offsets);
  } catch {
    return () => undefined;
  }
}

/** Prefers places in the author's own files over those in libraries. */
function locate(map: SourceMap, offsets: readonly number[]): string | undefined {
  const places = offsets.map((offset) => placeOf(map, offset)).filter((place) => place !== undefined);
  return places.find((place) => !place.startsWith("~lib/")) ?? places[0];
}

/** Instructions such as the start of a loop have no place: the next instruction with one stands for them. */
function placeOf(map: SourceMap, offset: number): string | undefined {
  for (let at = offset; at < offset + maxLookaheadBytes; at++) {
    const entry = map.findEntry(0, at);
    if (!("originalSource" in entry) || entry.originalSource === undefined) continue;
    return `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  }
  return undefined;
}

/**
 * Returns where a plugin failed, from the stack of a trial: byte offsets of instructions in the module as its author built
 * it, innermost call first; none where it failed outside its code. The sandbox must admit `module` under `memoryPages`.
 */
export function failurePlaces(stack: string, module: Uint8Array, memoryPages: number): readonly number[] {
  const metered = [...stack.matchAll(/wasm-function\[\d+\]:0x([0-9a-f]+)/g)];
  if (metered.length === 0) return [];
  const origins: Origin[] = [];
  const { ownBytes } = meterModule(parseModule(module), memoryPages, origins);
  return metered
    .map(([, offset = ""]) => Number.parseInt(offset, 16))
    .filter((offset) => offset < ownBytes)
    .map((offset) => originOf(offset, origins));
}

/** Code that the meter inserted before an instruction counts as that instruction. */
function originOf(metered: number, origins: readonly Origin[]): number {
  return origins.findLast((origin) => origin.metered <= metered)?.original ?? 0;
}
