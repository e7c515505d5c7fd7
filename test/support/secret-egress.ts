import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readExtensionFolder } from "../../core/extension/folder.ts";
import { acceptUnverified } from "../../core/extension/unverified.ts";
import { phases } from "../../core/kernel/envelope.ts";
import type { JsonObject } from "../../core/kernel/json.ts";
import { loadPlugin } from "../../core/pipeline/plugin-load.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { type ImmediatePolicy, immediate, portsOfOneThread } from "./plugin-port.ts";

export const secretEgress: string = join(repositoryRoot, "plugins/secret-egress");

/** The shipped plugin, loaded as the gateway loads it. */
export async function openSecretEgress(settings: JsonObject = {}): Promise<ImmediatePolicy> {
  const extension = acceptUnverified(await readExtensionFolder(secretEgress, "plugin"), null);
  const place = { path: secretEgress, mode: "enforce", phases, settings } as const;
  return immediate((await loadPlugin(place, extension, portsOfOneThread)).policy);
}

/** The committed module. */
export function secretEgressModule(): Buffer {
  return readFileSync(join(secretEgress, "plugin.wasm"));
}
