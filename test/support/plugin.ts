import { readExtensionFolder } from "../../core/extension/folder.ts";
import { acceptUnverified } from "../../core/extension/unverified.ts";
import { phases } from "../../core/kernel/envelope.ts";
import type { JsonObject } from "../../core/kernel/json.ts";
import { loadPlugin } from "../../core/pipeline/plugin-load.ts";
import { type ImmediatePolicy, immediate, portsOfOneThread } from "./plugin-port.ts";

/** A plugin's folder, loaded as the gateway loads it. */
export async function openPlugin(path: string, settings: JsonObject = {}): Promise<ImmediatePolicy> {
  const extension = acceptUnverified(await readExtensionFolder(path, "plugin"), null);
  const place = { path, mode: "enforce", phases, taints: [], settings } as const;
  return immediate((await loadPlugin(place, extension, portsOfOneThread)).policy);
}
