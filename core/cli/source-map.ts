import { mkdir, readFile, writeFile } from "node:fs/promises";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { contentDigest } from "../kernel/digest.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";

/** Where in the author's source an instruction comes from, as editors take it: `file:line:column`. */
export type Locate = (offsets: readonly number[]) => string | undefined;

/** Beside the plugin's files, where nothing is signed or loaded. */
const mapFile = join("build", "plugin.wasm.map");
const digestMember = "x_module_digest";
/** Bytes. */
const furthest = 64;

/** Keeps the compiler's source map of a module, for messages. */
export async function writeSourceMap(folder: string, map: string, module: Uint8Array): Promise<void> {
  const content: Json = JSON.parse(map);
  if (!isJsonObject(content)) throw new TypeError("writeSourceMap: expected a source map");
  await mkdir(join(folder, "build"), { recursive: true });
  await writeFile(join(folder, mapFile), JSON.stringify({ ...content, [digestMember]: contentDigest(module) }));
}

/** Tells places of a module; nothing, where there is no source map of just this module. */
export async function readSourceMap(folder: string, module: Uint8Array): Promise<Locate> {
  try {
    const map = JSON.parse(await readFile(join(folder, mapFile), "utf8"));
    if (map[digestMember] !== contentDigest(module)) return () => undefined;
    const read = new SourceMap(map);
    return (offsets) => locate(read, offsets);
  } catch {
    return () => undefined;
  }
}

/** The innermost place in the author's own files; where there is none, the innermost of all. */
function locate(map: SourceMap, offsets: readonly number[]): string | undefined {
  const places = offsets.map((offset) => placeOf(map, offset)).filter((place) => place !== undefined);
  return places.find((place) => !place.startsWith("~lib/")) ?? places[0];
}

/** Some instructions, such as the beginning of a loop, have no place of their own: then that of the next that has one. */
function placeOf(map: SourceMap, offset: number): string | undefined {
  for (let at = offset; at < offset + furthest; at++) {
    const entry = map.findEntry(0, at);
    if (!("originalSource" in entry) || entry.originalSource === undefined) continue;
    return `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  }
  return undefined;
}
