import { phases } from "../../core/action/envelope.ts";
import type { JsonObject } from "../../core/action/json.ts";
import { loadPluginPolicy } from "../../core/policy/plugin-load.ts";
import { readExtensionFolder } from "../../core/trust/folder.ts";
import { acceptUnverified } from "../../core/trust/verified-extension.ts";
import { type ImmediatePolicy, immediate, portsOfOneThread } from "./plugin-port.ts";

/** A plugin's folder, loaded as the gateway loads it. */
export async function openPlugin(path: string, settings: JsonObject = {}): Promise<ImmediatePolicy> {
  const extension = acceptUnverified(await readExtensionFolder(path, "plugin"), null);
  const place = { path, mode: "enforce", phases, taints: [], settings } as const;
  return immediate((await loadPluginPolicy(place, extension, portsOfOneThread)).policy);
}
