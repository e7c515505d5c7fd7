import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../core/action/json.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { openPlugin } from "./plugin.ts";
import type { ImmediatePolicy } from "./plugin-port.ts";

/** Plugins of ours, by the folder each has. */
export const firstParty = ["pii-guard", "prompt-injection", "secret-egress"] as const;
export type FirstParty = (typeof firstParty)[number];

export function folderOf(name: FirstParty): string {
  return join(repositoryRoot, "plugins", name);
}

/** A shipped plugin, loaded as the gateway loads it. */
export function openFirstParty(name: FirstParty, settings: JsonObject = {}): Promise<ImmediatePolicy> {
  return openPlugin(folderOf(name), settings);
}

/** The committed module. */
export function moduleOfFirstParty(name: FirstParty): Buffer {
  return readFileSync(join(folderOf(name), "plugin.wasm"));
}
