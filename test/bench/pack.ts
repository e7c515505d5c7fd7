import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ActionEnvelope } from "../../core/action/envelope.ts";
import { type CompiledPack, compilePack } from "../../core/policy/pack.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { makeAction } from "../support/action.ts";
import { immediate } from "../support/plugin-port.ts";
import { optionsFor } from "../support/policy-pack.ts";
import { tableHead, tableRow } from "./table.ts";

/** The processor time that each shipped pack takes for an action, and for a load. */
const rounds = Number(process.env.BENCH_ROUNDS ?? 5);
const repeats = 2_000;
const root = join(repositoryRoot, "policy-packs");

const call = makeAction({
  tool: "read_file",
  capability: "read",
  arguments: { path: "/srv/app/src/index.ts", lines: 40 },
});
const listing = makeAction({
  phase: "list",
  tool: "read_file",
  capability: "read",
  tool_definition: {
    digest: `sha256:${"0".repeat(64)}`,
    annotations: { readOnlyHint: true },
    description:
      "Reads a file as text. Lines are counted from 1. Only works below the folders that the server was given.",
    input_schema: { type: "object", properties: { path: { type: "string", description: "The path of the file." } } },
  },
});

process.stdout.write(`node ${process.version}, ${rounds} rounds after one, µs of processor\n\n`);
process.stdout.write(
  tableHead(["pack", "rules", "own cases", "a case", "a call", "a listed tool", "a load with its tests"]),
);
for (const entry of readdirSync(root, { withFileTypes: true })) {
  if (!entry.isDirectory()) continue;
  const folder = join(root, entry.name);
  const load = async (): Promise<CompiledPack> => compilePack(await optionsFor(folder));
  const compiled = await load();
  const cases = (await compiled.test()).length;
  const ownCase = (await leastUs(() => compiled.test())) / cases;
  const costs = [ownCase, await costOf(compiled, call), await costOf(compiled, listing)];
  const start = await leastUs(async () => (await load()).test());
  const cells = [...costs.map((us) => us.toFixed(1)), start.toFixed(0)];
  process.stdout.write(tableRow([entry.name, compiled.pack.rules.length, cases, ...cells]));
}

async function costOf({ pack }: CompiledPack, action: ActionEnvelope): Promise<number> {
  const policy = immediate(pack.policy);
  const evaluateAll = (): void => {
    for (let index = 0; index < repeats; index++) policy.evaluate(action);
  };
  return (await leastUs(evaluateAll)) / repeats;
}

/** The least of the rounds, so that what else the machine does counts little. */
async function leastUs(work: () => unknown): Promise<number> {
  await work();
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const start = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(start);
    least = Math.min(least, user + system);
  }
  return least;
}
