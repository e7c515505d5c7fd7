import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ActionEnvelope } from "../../core/action/envelope.ts";
import type { Policy } from "../../core/action/policy.ts";
import { PolicyChain } from "../../core/policy/chain.ts";
import { loadPack } from "../../core/policy/pack.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { makeAction } from "../support/action.ts";
import { optionsFor } from "../support/policy-pack.ts";

// Microseconds an evaluation takes: with the baseline pack, and beside more and more rules that cannot match.
const rounds = 20_000;
const baseline = join(repositoryRoot, "policy-packs/baseline");
const read = makeAction({ tool: "read_text_file", arguments: { path: "/home/ada/project/src/index.ts" } });
const write = makeAction({
  capability: "write",
  arguments: { path: "/home/ada/a.md", content: "lorem ipsum\n".repeat(500) },
});

function microseconds(policies: readonly Policy[], action: ActionEnvelope): string {
  const chain = new PolicyChain({
    policies,
    defaultDecision: "block",
    deadlineMs: 100,
    newId: () => "id",
    elapsedMs: () => performance.now(),
  });
  for (let round = 0; round < rounds / 4; round++) chain.evaluate(action);
  const started = performance.now();
  for (let round = 0; round < rounds; round++) chain.evaluate(action);
  return (((performance.now() - started) * 1_000) / rounds).toFixed(2).padStart(7);
}

/** One rule that matches and `count` that do not: by name, by beginning, by end, by capability. */
async function withIdleRules(count: number): Promise<Policy> {
  const folder = await mkdtemp(join(tmpdir(), "bench-policy-"));
  try {
    await mkdir(join(folder, "rules"));
    await writeFile(
      join(folder, "pack.yaml"),
      "apiVersion: gateway/v1\nkind: PolicyPack\nmetadata: { name: b, version: 1.0.0, title: B }\nnamespace: b\n",
    );
    const matches = [
      (n: number) => `tool: t${n}`,
      (n: number) => `tool: t${n}_*`,
      (n: number) => `tool: "*_t${n}"`,
      (n: number) => `target: u${n}`,
    ];
    const idle = Array.from({ length: count }, (_, n) => {
      return `  - { id: b.r${n}, title: R, decision: block, when: "args.n > ${n}", match: { ${matches[n % 4]?.(n)} } }`;
    });
    const live = `  - { id: b.live, title: Live, decision: allow, match: { tool: read_* }, when: 'args.path.startsWith("/home/")' }`;
    for (let part = 0; part === 0 || part * 2_500 < count; part++) {
      const rules = idle.slice(part * 2_500, (part + 1) * 2_500);
      await writeFile(
        join(folder, "rules", `${part}.yaml`),
        `rules:\n${[...rules, ...(part === 0 ? [live] : [])].join("\n")}\n`,
      );
    }
    return (await loadPack(await optionsFor(folder))).policy;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const { policy } = await loadPack(await optionsFor(baseline));
process.stdout.write(`no policy                    ${microseconds([], read)} µs\n`);
process.stdout.write(`baseline, a read             ${microseconds([policy], read)} µs\n`);
process.stdout.write(`baseline, a write of 6 kB    ${microseconds([policy], write)} µs\n`);
for (const count of [10, 100, 1_000, 9_999]) {
  process.stdout.write(
    `1 rule and ${String(count).padStart(5)} idle ones  ${microseconds([await withIdleRules(count)], read)} µs\n`,
  );
}
