import { phases } from "../../core/action/envelope.ts";
import type { JsonObject } from "../../core/action/json.ts";
import { loadPluginPolicy } from "../../core/policy/plugin-load.ts";
import { readExtensionFolder } from "../../core/trust/folder.ts";
import { acceptUnverified } from "../../core/trust/verified-extension.ts";
import { type ImmediatePolicy, immediate, portsOfOneThread } from "./plugin-port.ts";

/** Digests of plugins whose own tests have run in this process. */
const tested = new Set<string>();

/** A plugin's folder, loaded as the gateway loads it. Its own tests run with the first load: each names its settings. */
export async function openPlugin(path: string, settings: JsonObject = {}): Promise<ImmediatePolicy> {
  const folder = await readExtensionFolder(path, "plugin");
  const read = tested.has(folder.digest) ? { ...folder, files: withoutTests(folder.files) } : folder;
  const place = { path, mode: "enforce", phases, taints: [], settings } as const;
  const { policy } = await loadPluginPolicy(place, acceptUnverified(read, null), portsOfOneThread);
  tested.add(folder.digest);
  return immediate(policy);
}

function withoutTests(files: ReadonlyMap<string, Buffer>): ReadonlyMap<string, Buffer> {
  return new Map([...files].filter(([path]) => !path.startsWith("tests/")));
}
