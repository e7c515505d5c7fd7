import { GatewayError } from "../../action/error.ts";
import { FaultList } from "../../config/fault.ts";
import { ModuleFault } from "../../plugin/wasm/binary.ts";
import type { EngineSource } from "../manifest.ts";
import { moduleFile, RegoEngine } from "./rego-engine.ts";
import { RegoMachine } from "./rego-machine.ts";

const dataFile = "data.json";
/** Data that an OPA server would read as well. */
const otherData = /(?:^|\/)data\.(?:json|ya?ml)$/;

/**
 * Makes an engine of an unpacked OPA bundle: `policy.wasm` and, where it is there, `data.json`. `entrypoint` is a path such as
 * `gateway/decision`. Rejects with ENGINE_INVALID.
 */
export async function loadRego(path: string, source: EngineSource, entrypoint: string): Promise<RegoEngine> {
  const faults = new FaultList("");
  const module = source.files.get(moduleFile);
  const add = (file: string, message: string): void => faults.addAt({ file, line: 1, column: 1 }, message);
  if (module === undefined) add(moduleFile, "expected this file, as `opa build -t wasm` makes it");
  for (const file of source.files.keys())
    if (file !== dataFile && otherData.test(file)) add(file, `expected all data in \`${dataFile}\` of the folder`);
  faults.throwIfAny("ENGINE_INVALID", path);
  if (module === undefined) throw new TypeError("loadRego: expected a module or a fault");
  const data = source.files.get(dataFile) ?? Buffer.from("{}");
  try {
    return new RegoEngine(source.ref.name, entrypoint, await RegoMachine.open({ module, data, entrypoint }));
  } catch (cause) {
    if (!(cause instanceof ModuleFault)) throw cause;
    throw new GatewayError("ENGINE_INVALID", `\`${path}\`\n${moduleFile}: ${cause.message}`, { cause });
  }
}
