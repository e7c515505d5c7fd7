import { GatewayError } from "../kernel/error.ts";
import { PluginBreach } from "./breach.ts";
import { compileModule } from "./compiled-module.ts";
import { PluginPolicy, type PluginPolicyOptions } from "./plugin-policy.ts";
import { ModuleFault } from "./wasm/module-fault.ts";

export interface PluginOptions extends Omit<PluginPolicyOptions, "compiled"> {
  /** The module as its author built it. */
  readonly module: Uint8Array;
  /** Pages of 64 KiB. */
  readonly memoryPages: number;
}

/** Checks, meters and compiles a plugin's module and makes a policy of it. Rejects with PLUGIN_INVALID. */
export async function compilePlugin({ module, memoryPages, ...options }: PluginOptions): Promise<PluginPolicy> {
  try {
    const compiled = await compileModule({ bytes: module, memoryPages });
    return new PluginPolicy({ ...options, compiled });
  } catch (cause) {
    if (!(cause instanceof ModuleFault || cause instanceof PluginBreach)) throw cause;
    throw new GatewayError("PLUGIN_INVALID", `\`${options.ref.name}\`: ${cause.message}`, { cause });
  }
}
