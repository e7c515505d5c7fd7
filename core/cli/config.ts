import { GatewayError } from "../action/error.ts";
import { configDigest } from "../config/digest.ts";
import { FaultList } from "../config/fault.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { loadConfig, readForm } from "../config/load.ts";
import {
  configJsonSchema,
  configKeys,
  configReference,
  trustJsonSchema,
  trustKeys,
  trustReference,
} from "../config/reference.ts";
import { hideSecrets, writeShown } from "../config/shown-config.ts";
import { print } from "./print.ts";

/** `gateway config reference`. */
export function printReference({ json }: { readonly json?: true }): void {
  if (json) print(JSON.stringify({ configuration: configKeys(), trust: trustKeys() }));
  else process.stdout.write(`${configReference()}\n${trustReference()}`);
}

/** `gateway config schema`. */
export function printSchema({ trust, json }: { readonly trust?: true; readonly json?: true }): void {
  print(JSON.stringify(trust ? trustJsonSchema() : configJsonSchema(), null, json ? 0 : 2));
}

/** `gateway config show`. */
export async function showConfig(file: string, { json }: { readonly json?: true }): Promise<void> {
  const shown = hideSecrets((await readForm(file, process.env)).form);
  if (json) print(JSON.stringify(shown));
  else process.stdout.write(writeShown(shown));
}

/** `gateway config check`. Ends with 1 where the file has faults. */
export async function checkConfig(file: string, { json }: { readonly json?: true }): Promise<void> {
  try {
    const config = await loadConfig(file, process.env, { requireFolders: true });
    if (config.policy.engines.length > 0) await checkEngines(file, config);
    const counts = { keys: config.keys.length, upstreams: config.upstreams.length, packs: config.policy.packs.length };
    const digest = configDigest(config);
    if (json) return print(JSON.stringify({ ok: true, ...counts, digest }));
    const rows = Object.entries({ ...counts, digest }).map(([name, value]) => `${name}: ${value}`);
    print([`${file}: ok`, ...rows].join("\n"));
  } catch (error) {
    if (!(error instanceof GatewayError && error.code === "CONFIG_INVALID")) throw error;
    process.exitCode = 1;
    print(json ? JSON.stringify({ ok: false, ...error.data }) : String(error.detail));
  }
}

/** Loads the engines as a start would: signature, manifest, policies, tests. Rejects with CONFIG_INVALID. */
async function checkEngines(file: string, config: GatewayConfig): Promise<void> {
  const { loadOnTrial } = await import("./trial-load.ts");
  const { policy } = config;
  await loadOnTrial({ ...config, policy: { ...policy, packs: [], plugins: [] } }, () => undefined).catch((cause) => {
    const faults = new FaultList(file);
    faults.add("policy.engines", GatewayError.from(cause).message);
    faults.throwIfAny();
  });
}
