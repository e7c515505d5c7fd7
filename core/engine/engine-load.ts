import type { Phase } from "../action/envelope.ts";
import type { Mode, Policy, Verdict } from "../action/policy.ts";
import { FaultList } from "../config/fault.ts";
import type { ExtensionLoader } from "../policy/extension-load.ts";
import { type LoadedPolicy, tightenPolicy } from "../policy/plugin-load.ts";
import { runCase, type TestResult } from "../policy/test-case.ts";
import { hasPassed, notePassed, readTests, requirePassed } from "../policy/test-file.ts";
import type { VerifiedExtension } from "../trust/verified-extension.ts";
import { loadCedar } from "./cedar/cedar-load.ts";
import { type Engine, type EngineObserver, EnginePolicy } from "./engine-policy.ts";
import { type EngineSource, type FolderEngine, readEngine } from "./manifest.ts";
import { loadRego } from "./rego/rego-load.ts";

/** An entry of `policy.engines` whose policies are a folder. */
export interface EnginePlace {
  readonly type: FolderEngine;
  readonly path: string;
  readonly mode: Mode;
  readonly phases: readonly Phase[];
}

/** The loaders of the folders that a configuration names, in its order. */
export function engineLoaders(engines: readonly EnginePlace[], observer: EngineObserver): readonly ExtensionLoader[] {
  return engines.map((place) => ({
    kind: "engine",
    path: place.path,
    compile: (extension) => loadPlace(place, extension, observer),
  }));
}

async function loadPlace(
  { path, type, mode, phases }: EnginePlace,
  extension: VerifiedExtension,
  observer: EngineObserver,
): Promise<LoadedPolicy> {
  const { source, engine } = await openEngineFolder(path, extension, type);
  if (!hasPassed(extension)) {
    requirePassed(path, await testEngine(path, source, engine), "ENGINE_INVALID");
    notePassed(extension);
  }
  const policy = new EnginePolicy({ ref: source.ref, mode, phases, engine, observer });
  return { extension, ref: source.ref, policy: extension.tightenOnly ? tightenPolicy(policy) : policy };
}

/** A folder that is read and checked, without its tests. */
export interface OpenedEngine {
  readonly source: EngineSource;
  readonly engine: Engine;
}

/** Reads and checks a folder. `type` is what the configuration says; null where none does. Rejects with ENGINE_INVALID. */
export async function openEngineFolder(
  path: string,
  extension: VerifiedExtension,
  type: FolderEngine | null = null,
): Promise<OpenedEngine> {
  const source = readEngine(path, type, extension);
  const { engine } = source;
  return {
    source,
    engine: engine === "cedar" ? await loadCedar(path, source) : await loadRego(path, source, source.entrypoint),
  };
}

/** Runs the folder's own tests, in every phase. Rejects with ENGINE_INVALID for tests with faults. */
export async function testEngine(path: string, source: EngineSource, engine: Engine): Promise<readonly TestResult[]> {
  const faults = new FaultList("");
  const tests = await readTests(source.files, "action", faults);
  faults.throwIfAny("ENGINE_INVALID", path);
  const policy: Policy = { ref: source.ref, mode: "enforce", evaluate: (action) => judgeOrBlock(engine, action) };
  const results: TestResult[] = [];
  for (const test of tests) results.push(await runCase(test, policy));
  return results;
}

/** As in the chain, a failure blocks. */
async function judgeOrBlock(engine: Engine, action: Parameters<Engine["judge"]>[0]): Promise<Verdict> {
  try {
    return await engine.judge(action);
  } catch (error) {
    return { decision: "block", findings: [], risk: 0, error: String(error) };
  }
}
