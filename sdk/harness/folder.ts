import { readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { parse } from "yaml";
import type { JsonObject, PluginManifest } from "../contract/index.ts";

export interface PluginFiles {
  readonly name: string;
  readonly module: Uint8Array<ArrayBuffer>;
  readonly defaults: JsonObject;
}

/** The module of a plugin's folder and what its manifest says of it; of a `.wasm` file by itself, its name. */
export async function readPluginFiles(path: string): Promise<PluginFiles> {
  if (!(await stat(path)).isDirectory()) {
    return { name: basename(path, ".wasm"), module: await readBytes(path), defaults: {} };
  }
  const manifest: PluginManifest = parse(await readFile(join(path, "plugin.yaml"), "utf8"));
  const module = await readBytes(join(path, manifest.module));
  return { name: manifest.metadata.name, module, defaults: manifest.settings?.defaults ?? {} };
}

async function readBytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await readFile(path));
}
