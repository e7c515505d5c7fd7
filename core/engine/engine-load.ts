import { GatewayError } from "../action/error.ts";
import type { Policy, Verdict } from "../action/policy.ts";
import { FaultList } from "../config/fault.ts";
import type { EngineConfig } from "../config/gateway-config.ts";
import type { EgressGuard } from "../egress/egress-guard.ts";
import type { ExtensionLoader } from "../policy/extension-load.ts";
import { hasPassed, notePassed } from "../policy/passed-tests.ts";
import { type LoadedPolicy, tightenPolicy } from "../policy/plugin-load.ts";
import { runCase, type TestResult } from "../policy/test-case.ts";
import { readTests, requirePassed } from "../policy/test-file.ts";
import type { VerifiedExtension } from "../trust/verified-extension.ts";
import { loadCedar, loadSchema } from "./cedar/cedar-load.ts";
import { type Engine, type EngineObserver, EnginePolicy } from "./engine-policy.ts";
import { type EngineSource, readEngine } from "./manifest.ts";
import { loadRego } from "./rego/rego-load.ts";
import { CedarAgent } from "./server/cedar-agent.ts";
import { OpaServer } from "./server/opa-server.ts";
import { PolicyServer } from "./server/policy-server.ts";
import { ServerEngine } from "./server/server-engine.ts";

/** An entry of `policy.engines`. */
export type EnginePlace = Pick<EngineConfig, "type" | "path" | "mode" | "phases" | "url" | "token">;

/** The services that engines need. */
export interface EnginePorts {
  readonly observer: EngineObserver;
  readonly egress: EgressGuard;
  /** The longest time for one answer. */
  readonly deadlineMs: number;
}

/** The loaders of the folders that a configuration names, in its order. */
export function engineLoaders(engines: readonly EnginePlace[], ports: EnginePorts): readonly ExtensionLoader[] {
  return engines.map((place) => ({
    kind: "engine",
    path: place.path,
    compile: (extension) => loadPlace(place, extension, ports),
  }));
}

async function loadPlace(place: EnginePlace, extension: VerifiedExtension, ports: EnginePorts): Promise<LoadedPolicy> {
  const { path, type, mode, phases } = place;
  const source = readEngine(path, type, extension);
  const { ref } = source;
  const engine = await makeEngine(path, source, (deadlineMs) => connect(place, ref.name, deadlineMs, ports));
  if (!hasPassed(extension)) {
    requirePassed(path, await testEngine(path, source, engine), "ENGINE_INVALID");
    notePassed(extension);
  }
  const policy = new EnginePolicy({ ref, mode, phases, engine, observer: ports.observer });
  return { extension, ref, policy: extension.tightenOnly ? tightenPolicy(policy) : policy };
}

function connect({ url, token }: EnginePlace, name: string, ownMs: number | null, ports: EnginePorts): PolicyServer {
  const { egress, observer } = ports;
  if (url === null) throw new TypeError("connect: expected the `url` of a server, which the configuration requires");
  const deadlineMs = Math.min(ownMs ?? ports.deadlineMs, ports.deadlineMs);
  return new PolicyServer({ url, token, deadlineMs, egress, onCircuit: (state) => observer.circuit(name, state) });
}

/** Makes a client of the engine's server with the deadline of its manifest; null where that states none. */
export type Connect = (deadlineMs: number | null) => PolicyServer;

/** A folder that is read and checked, without its tests. */
export interface OpenedEngine {
  readonly source: EngineSource;
  readonly engine: Engine;
}

/** Reads and checks a folder with policies, of any engine that evaluates them here. Rejects with ENGINE_INVALID. */
export async function openEngineFolder(path: string, extension: VerifiedExtension): Promise<OpenedEngine> {
  const source = readEngine(path, null, extension);
  const engine = await makeEngine(path, source, () => {
    const detail = `\`${path}\`: expected policies, got those of a server; \`gateway test-action\` asks it`;
    throw new GatewayError("ENGINE_INVALID", detail);
  });
  return { source, engine };
}

/** Makes an engine of a folder. Rejects with ENGINE_INVALID. */
export async function makeEngine(path: string, source: EngineSource, connectServer: Connect): Promise<Engine> {
  switch (source.engine) {
    case "cedar":
      return loadCedar(path, source);
    case "rego":
      return loadRego(path, source, source.entrypoint);
    case "opa-server":
      refuseTests(path, source);
      return new ServerEngine(new OpaServer(source), connectServer(source.deadlineMs));
    case "cedar-agent": {
      refuseTests(path, source);
      const agent = new CedarAgent(source, await loadSchema(path, source));
      return new ServerEngine(agent, connectServer(source.deadlineMs));
    }
  }
}

/** A start must not depend on a server that is up, so that the folder of one has no tests. */
function refuseTests(path: string, { files, engine }: EngineSource): void {
  const faults = new FaultList("");
  for (const file of files.keys()) {
    if (!file.startsWith("tests/")) continue;
    faults.addAt({ file, line: 1, column: 1 }, `expected no tests: the policies of \`${engine}\` are on its server`);
  }
  faults.throwIfAny("ENGINE_INVALID", path);
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
