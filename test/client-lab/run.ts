import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProviderCall } from "../fixture/model-provider.ts";
import { commandLineRows } from "./command-line.ts";
import { bridgeRows, frameworkRows } from "./framework.ts";
import { openLab } from "./lab.ts";
import { RefusingProxy } from "./refusing-proxy.ts";
import { type LabRow, modelOfRow } from "./row.ts";

/** What a client did, as the others saw it. */
export interface LabRun {
  readonly row: LabRow;
  /** What it printed; the error, where it failed. */
  readonly output: string | Error;
  /** What it told its model, or was told itself, of each call. */
  readonly told: readonly string[];
  /** How often the server had been asked to write when the first held call was answered. */
  readonly writesWhileHeld: number | undefined;
  /** What reached the MCP server: the names and arguments of its calls. */
  readonly calls: readonly { readonly name: string; readonly arguments: object }[];
  /** What reached the model provider. */
  readonly asked: readonly ProviderCall[];
  /** Hosts other than this machine that it asked for. */
  readonly hosts: readonly string[];
}

export const rows: readonly LabRow[] = [...commandLineRows, ...frameworkRows, ...bridgeRows];

/** How many clients are at work at a time: each waits for its reviewer for some seconds. */
const jobs = 3;

/** Has every client do the task, each before a gateway of its own. */
export async function runAll(): Promise<readonly LabRun[]> {
  const waiting = [...rows.entries()];
  const runs: LabRun[] = [];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, row] = next;
      runs[index] = await runRow(row);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  return runs;
}

export async function runRow(row: LabRow): Promise<LabRun> {
  const [lab, proxy] = [await openLab(), await RefusingProxy.start()];
  const home = await mkdtemp(join(tmpdir(), "client-lab-"));
  try {
    const { world, provider, task } = lab;
    const [url, model] = [world.gateway.url, modelOfRow(row)];
    const place = { url, key: world.key, model, home, env: proxy.env, task };
    const output = await row.run(place).catch((error: Error) => error);
    if (!(output instanceof Error)) await task.reviewed().catch(() => undefined); // what is missing shows in the cells
    const { told, writesWhileHeld } = task;
    const calls = lab.calls() as LabRun["calls"];
    return { row, output, told, writesWhileHeld, calls, asked: provider.calls, hosts: proxy.hosts };
  } finally {
    proxy.stop();
    await lab.stop();
    await rm(home, { recursive: true, force: true });
  }
}
