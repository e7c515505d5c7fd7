import { phases } from "../../core/action/envelope.ts";
import type { JsonObject } from "../../core/action/json.ts";
import { loadPluginPolicy } from "../../core/policy/plugin-load.ts";
import { readExtensionFolder } from "../../core/trust/folder.ts";
import { acceptUnverified } from "../../core/trust/verified-extension.ts";
import { type ImmediatePolicy, immediate, portsOfOneThread } from "./plugin-port.ts";

/** A plugin's folder, loaded as the gateway loads it. */
export async function openPlugin(path: string, settings: JsonObject = {}): Promise<ImmediatePolicy> {
  const folder = await readExtensionFolder(path, "plugin");
  const place = { path, mode: "enforce", phases, taints: [], settings } as const;
  const { policy } = await loadPluginPolicy(place, acceptUnverified(folder, null), portsOfOneThread);
  return immediate(policy);
}
