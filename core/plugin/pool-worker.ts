import { parentPort } from "node:worker_threads";
import { lowerPriority } from "../store/thread-priority.ts";
import { encodeInput } from "./abi.ts";
import { PluginBreach } from "./breach.ts";
import { PluginMachine } from "./plugin-machine.ts";
import type { PoolOrder, PoolReply } from "./plugin-pool.ts";

const maxMachines = 8;

lowerPriority();

/** The machines of this thread, least recently used first. */
const machines = new Map<number, PluginMachine>();

parentPort?.on("message", async (order: PoolOrder) => parentPort?.postMessage(await answer(order)));

async function answer({ compiled, machine: key, fuel, input }: PoolOrder): Promise<PoolReply> {
  let machine: PluginMachine | undefined;
  const started = performance.now();
  const cost = (): { fuelUsed: number; tookMs: number } => ({
    fuelUsed: machine?.fuelUsed ?? 0,
    tookMs: performance.now() - started,
  });
  try {
    machine = machines.get(key) ?? (await PluginMachine.open(compiled));
    remember(key, machine);
    await machine.prepare();
    // A part of a buffer would be sent with the whole of it.
    const answer = machine.call(encodeInput(input), fuel).slice();
    return { answer, ...cost() };
  } catch (error) {
    if (!(error instanceof PluginBreach)) throw error;
    return { reason: error.reason, detail: error.detail, ...cost() };
  }
}

function remember(key: number, machine: PluginMachine): void {
  machines.delete(key);
  machines.set(key, machine);
  const [oldest] = machines.keys();
  if (machines.size > maxMachines && oldest !== undefined) machines.delete(oldest);
}
