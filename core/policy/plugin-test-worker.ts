import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { runPluginOnce } from "./plugin-run.ts";
import type { PluginTestOrder } from "./plugin-test.ts";

const niceness = 10;

// On Linux this is the thread's own priority, elsewhere that of the whole process: there it stays as it is.
if (process.platform === "linux") setPriority(niceness);

const { plugin, cases } = workerData as PluginTestOrder;
for (const each of cases) parentPort?.postMessage(await runPluginOnce(plugin, each));
