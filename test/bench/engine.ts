import type { ActionEnvelope } from "../../core/action/envelope.ts";
import { EgressGuard } from "../../core/egress/egress-guard.ts";
import { makeEngine, type OpenedEngine, openEngineFolder } from "../../core/engine/engine-load.ts";
import { readEngine } from "../../core/engine/manifest.ts";
import { PolicyServer } from "../../core/engine/server/policy-server.ts";
import { cedarFiles, noteCall } from "../support/cedar-folder.ts";
import { engineExtension } from "../support/engine-folder.ts";
import {
  agentPolicies,
  cedarAgentFiles,
  opaServerFiles,
  standInCedarAgent,
  standInOpa,
} from "../support/policy-server.ts";
import { regoFiles } from "../support/rego-folder.ts";

// Microseconds of one evaluation by an engine, from the envelope to the verdict, after a warm-up. It prints and asserts nothing.
const warmUp = 500;
const evaluations = 2_000;

function open(policies?: string): Promise<OpenedEngine["engine"]> {
  return openFiles(cedarFiles(policies === undefined ? {} : { "policies.cedar": policies }));
}

async function openFiles(contents: Readonly<Record<string, string | Uint8Array>>): Promise<OpenedEngine["engine"]> {
  return (await openEngineFolder("bench", engineExtension(contents))).engine;
}

/** An engine that asks a server in this process: what is measured is the way there and back, and the server's own time. */
function openServer(url: string, contents: Readonly<Record<string, string>>): Promise<OpenedEngine["engine"]> {
  const egress = new EgressGuard({ privateHosts: [] });
  const options = { url, token: null, deadlineMs: 10_000, egress, onCircuit: () => undefined };
  return makeEngine("bench", readEngine("bench", null, engineExtension(contents)), () => new PolicyServer(options));
}

/** One permit, and forbids that each name a tool, or none. */
function manyPolicies(count: number, scope: (at: number) => string): string {
  const forbids = Array.from(
    { length: count },
    (_, at) =>
      `forbid(principal, action == Action::"write", ${scope(at)}) when { context.arguments.title == "${at}" };`,
  );
  const guarded = forbids.map((policy) =>
    policy.replace("context.arguments.title ==", "context.arguments has title && context.arguments.title =="),
  );
  return ["permit(principal, action, resource);", ...guarded].join("\n");
}

const opa = await standInOpa().start();
const agent = await (await standInCedarAgent(agentPolicies)).start();
const small = noteCall({ title: "plan", text: "buy oats" });
const large = noteCall({ title: "plan", text: "buy oats ".repeat(5_000) });
const cases: readonly (readonly [string, OpenedEngine["engine"], ActionEnvelope])[] = [
  ["cedar, 5 policies", await open(), small],
  ["cedar, 5 policies, 45 KB of text", await open(), large],
  [
    "cedar, 400 policies, each of one tool",
    await open(manyPolicies(400, (at) => `resource == Tool::"a/${at}"`)),
    small,
  ],
  ["cedar, 400 policies of every tool", await open(manyPolicies(400, () => "resource")), small],
  ["rego, a small module", await openFiles(regoFiles()), small],
  ["opa-server, a stand-in on this machine", await openServer(opa.url, opaServerFiles()), small],
  ["cedar-agent, a stand-in on this machine", await openServer(agent.url, cedarAgentFiles()), small],
];

process.stdout.write(`node ${process.version}\n\n| engine | p50 µs | p99 µs |\n|---|---|---|\n`);
for (const [name, engine, action] of cases) {
  for (let round = 0; round < warmUp; round++) await engine.judge(action);
  const times: number[] = [];
  for (let round = 0; round < evaluations; round++) {
    const started = performance.now();
    await engine.judge(action);
    times.push((performance.now() - started) * 1_000);
  }
  times.sort((a, b) => a - b);
  const at = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  process.stdout.write(`| ${name} | ${at(0.5)} | ${at(0.99)} |\n`);
}
await Promise.all([opa.stop(), agent.stop()]);
