import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ModelApi } from "../../core/action/model-api.ts";
import { repositoryRoot } from "../check/source-tree.ts";

const folder = join(repositoryRoot, "test", "fixture", "model");

/** The names of the streams in `test/fixture/model`, or of the malformed ones below it. */
export function recordedNames(below: "" | "malformed/" = ""): readonly string[] {
  return readdirSync(join(folder, below))
    .filter((name) => name.endsWith(".sse"))
    .map((name) => below + name.slice(0, -".sse".length));
}

export function recordedBytes(name: string): Uint8Array {
  return readFileSync(join(folder, `${name}.sse`));
}

/** The API that a recorded stream is in. */
export function recordedApi(name: string): ModelApi {
  return name.replace("malformed/", "").split("-")[0] as ModelApi;
}
