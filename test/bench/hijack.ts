/** Takes every script of `support/hijack.ts` through a gateway under session-watch alone, and prints what became of them. */
import { benign, doubtful, hijacked, type Script } from "../support/hijack.ts";
import { type Run, runScripts, runsWith } from "../support/hijack-run.ts";
import { WatchedSite } from "../support/watched-site.ts";

const site = await WatchedSite.open();
try {
  print("| sessions | scripts | injected actions that came through | with a held step | with a blocked step |");
  print("|---|---|---|---|---|");
  const runs = await report("hijacked", hijacked);
  await report("benign", benign);
  await report("benign, where only a person can tell", doubtful);
  for (const { name } of runs.filter(({ harmed }) => harmed)) print(`\ncame through: ${name}`);
} finally {
  await site.stop();
}

async function report(name: string, scripts: readonly Script[]): Promise<readonly Run[]> {
  const runs = await runScripts(site, scripts);
  const share = (count: number): string => `${count} (${((100 * count) / runs.length).toFixed(1)} %)`;
  const harmed = runs.filter((run) => run.harmed).length;
  const columns = [harmed, runsWith(runs, "held").length, runsWith(runs, "blocked").length].map(share);
  print(`| ${[name, runs.length, ...columns].join(" | ")} |`);
  return runs;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
