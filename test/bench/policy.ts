import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ActionEnvelope } from "../../core/action/envelope.ts";
import type { Policy } from "../../core/action/policy.ts";
import { PolicyChain } from "../../core/policy/chain.ts";
import { compilePack, loadPack } from "../../core/policy/pack.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { makeAction } from "../support/action.ts";
import { optionsFor } from "../support/policy-pack.ts";

// Microseconds of processor time that an evaluation takes: with each shipped pack, and beside more and more rules that
// cannot match.
const rounds = 20_000;
const warmups = 15_000;
const packs = join(repositoryRoot, "policy-packs");
const read = makeAction({ tool: "read_text_file", arguments: { path: "/home/ada/project/src/index.ts" } });
const write = makeAction({
  capability: "write",
  arguments: { path: "/home/ada/a.md", content: "lorem ipsum\n".repeat(500) },
});
const inSession = makeAction({
  ...read,
  facts: { hosts: ["example.com"], paths: ["/home/ada/project/src/index.ts"], more: false, effect: "read" },
  session_state: { risk: 12, actions: 32, reviews: 1, tools: 4, new_tool: false, taints: [] },
  history: Array.from({ length: 32 }, (_, index) => ({
    at: Date.parse(read.time) - 1_000 * index,
    protocol: "mcp",
    tool: `tool_${index % 4}`,
    target: "files",
    capability: "read",
    decision: "allow",
    dispatched: true,
    hosts: ["example.com"],
    paths: [`/home/ada/project/src/${index}.ts`],
  })),
});
const answer = makeAction({
  ...inSession,
  phase: "output",
  output: { content: [{ type: "text", text: "export const answer = 42;\n".repeat(40) }] },
});
const actions: readonly (readonly [string, ActionEnvelope])[] = [
  ["a read", read],
  ["a read in a session", inSession],
  ["a write of 6 kB", write],
  ["an answer of 1 kB", answer],
];

function microseconds(policies: readonly Policy[], action: ActionEnvelope): string {
  const chain = new PolicyChain({
    policies,
    defaultDecision: "block",
    deadlineMs: 100,
    newId: () => "id",
    elapsedMs: () => performance.now(),
  });
  for (let round = 0; round < warmups; round++) chain.evaluate(action);
  const before = process.cpuUsage();
  for (let round = 0; round < rounds; round++) chain.evaluate(action);
  const { user, system } = process.cpuUsage(before);
  return ((user + system) / rounds).toFixed(2).padStart(7);
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

const line = (title: string, action: ActionEnvelope, policies: readonly Policy[]): void => {
  process.stdout.write(`${title.padEnd(40)}${microseconds(policies, action)} µs\n`);
};

for (const [name, action] of actions) line(`no policy, ${name}`, action, []);
for (const folder of (await readdir(packs, { withFileTypes: true })).filter((entry) => entry.isDirectory())) {
  const options = await optionsFor(join(packs, folder.name));
  await compilePack(options);
  const before = process.cpuUsage();
  const { pack } = await compilePack(options);
  const { user, system } = process.cpuUsage(before);
  process.stdout.write(
    `${`${folder.name}, to compile`.padEnd(40)}${((user + system) / 1_000).toFixed(1).padStart(7)} ms\n`,
  );
  for (const [name, action] of actions) line(`${folder.name}, ${name}`, action, [pack.policy]);
}
for (const count of [9, 99, 999, 9_999]) {
  const policy = await withIdleRules(count);
  line(`1 rule and ${count} that cannot match`, read, [policy]);
}
