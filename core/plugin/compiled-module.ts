import { Worker } from "node:worker_threads";
import { GatewayError } from "../action/error.ts";
import { isJsonObject, type Json, type JsonObject } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";
import { escapeHidden } from "../action/visible-text.ts";
import { settingsCheck } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import { type CompiledModule, PluginMachine } from "./plugin-machine.ts";
import { ModuleFault } from "./wasm/binary.ts";

/** The input of the compile worker. */
export interface CompileOrder {
  readonly bytes: Uint8Array;
  readonly memoryPages: number;
  /** The fuel for initialisation, and again for validating the settings. */
  readonly fuel: number;
  /** The settings passed to `validate_settings`. */
  readonly settings: JsonObject;
}
export type CompileAnswer = CompiledModule | { readonly fault: string };

const compileMs = 10_000;
const heapMegabytes = 128;

/**
 * Checks, meters, compiles and initialises a module and lets it validate its settings, in a thread that is terminated
 * if it takes too much time or memory: a module is untrusted input. Rejects with ModuleFault.
 */
export function compileModule(order: CompileOrder): Promise<CompiledModule> {
  const worker = new Worker(new URL("./compile-worker.js", import.meta.url), {
    workerData: order,
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
  });
  return new Promise<CompiledModule>((resolve, reject) => {
    const fail = (message: string): void => reject(new ModuleFault(message));
    const timer = setTimeout(() => fail(`expected to be compiled within ${compileMs} ms`), compileMs);
    worker.once("message", (answer: CompileAnswer) => {
      if ("fault" in answer) fail(answer.fault);
      else resolve(answer);
    });
    worker.once("error", () => fail("the module cannot be compiled within bounds"));
    worker.once("exit", () => {
      clearTimeout(timer);
      fail("the compiler ended without an answer");
    });
  }).finally(() => void worker.terminate());
}

/** Returns what `config_get` finds: each setting by its name, a text as it is and anything else as JSON. */
export function configOf(settings: JsonObject): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  );
}

const bounds = { depth: 2, nodes: 8, stringLength: 512, reader: "exact" } as const;

/**
 * Calls a plugin's `validate_settings` with settings that fit its schema. Throws ModuleFault with the plugin's message
 * where it refuses them, and where it returns neither `{"valid": true}` nor `{"valid": false, "message": …}`.
 */
export async function runSettingsCheck(compiled: CompiledModule, settings: JsonObject, fuel: number): Promise<void> {
  const { valid, message } = await ask(compiled, settings, fuel);
  if (valid === true && message === undefined) return;
  if (valid !== false || typeof message !== "string" || message === "" || escapeHidden(message) !== message) {
    throw new ModuleFault(
      `expected \`${settingsCheck}\` to answer with \`valid\`, and a printable \`message\` where it refuses`,
    );
  }
  throw new ModuleFault(`the plugin refuses its settings: ${message}`);
}

async function ask(
  compiled: CompiledModule,
  settings: JsonObject,
  fuel: number,
): Promise<Readonly<Record<string, Json>>> {
  try {
    const input = new TextEncoder().encode(JSON.stringify({ settings }));
    const machine = await PluginMachine.open(compiled);
    const answer = parseStrictJson(machine.call(input, fuel, settingsCheck), bounds);
    return isJsonObject(answer) && Object.keys(answer).every((key) => key === "valid" || key === "message")
      ? answer
      : {};
  } catch (error) {
    if (error instanceof GatewayError) return {};
    if (error instanceof PluginBreach) throw new ModuleFault(`\`${settingsCheck}\`: ${error.message}`);
    throw error;
  }
}
