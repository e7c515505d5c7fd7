import { GatewayError } from "../kernel/error.ts";
import { PluginBreach } from "./breach.ts";
import { type CompiledModule, compileModule } from "./compiled-module.ts";
import { PluginMachine } from "./plugin-machine.ts";
import { PluginPolicy, type PluginPolicyOptions } from "./plugin-policy.ts";
import { ModuleFault } from "./wasm/module-fault.ts";

export interface PluginOptions extends Omit<PluginPolicyOptions, "compiled"> {
  /** The module as its author built it. */
  readonly module: Uint8Array;
  /** Pages of 64 KiB. */
  readonly memoryPages: number;
  /** Tries what was compiled before it becomes a policy; where it rejects, it becomes none. */
  readonly onCompiled?: (compiled: CompiledModule) => Promise<void>;
}

/** Checks, meters and compiles a plugin's module and makes a policy of it. Rejects with PLUGIN_INVALID. */
export function compilePlugin({ module, memoryPages, onCompiled, ...options }: PluginOptions): Promise<PluginPolicy> {
  return tellFaults(options.ref.name, async () => {
    const compiled = await compileModule({
      bytes: module,
      memoryPages,
      fuel: options.fuel,
      settings: options.settings,
    });
    await onCompiled?.(compiled);
    return new PluginPolicy({ ...options, compiled });
  });
}

export interface AdmissionOptions extends Pick<PluginOptions, "module" | "memoryPages" | "fuel" | "settings"> {
  /** What faults call the plugin. */
  readonly name: string;
}

/** A module that the sandbox takes and that has one instance at least, for trials. Rejects with PLUGIN_INVALID. */
export function admitModule({ name, module, ...order }: AdmissionOptions): Promise<CompiledModule> {
  return tellFaults(name, async () => {
    const compiled = await compileModule({ bytes: module, ...order });
    new PluginMachine(compiled);
    return compiled;
  });
}

async function tellFaults<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (!(cause instanceof ModuleFault || cause instanceof PluginBreach)) throw cause;
    throw new GatewayError("PLUGIN_INVALID", `\`${name}\`: ${cause.message}`, { cause });
  }
}
