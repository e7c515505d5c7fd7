import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../core/kernel/json.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { openPlugin } from "./plugin.ts";
import type { ImmediatePolicy } from "./plugin-port.ts";

export const secretEgress: string = join(repositoryRoot, "plugins/secret-egress");

/** The shipped plugin, loaded as the gateway loads it. */
export function openSecretEgress(settings: JsonObject = {}): Promise<ImmediatePolicy> {
  return openPlugin(secretEgress, settings);
}

/** The committed module. */
export function secretEgressModule(): Buffer {
  return readFileSync(join(secretEgress, "plugin.wasm"));
}
