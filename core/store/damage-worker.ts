import { parentPort, workerData } from "node:worker_threads";
import { everything, findDamage } from "./damage.ts";
import type { DamageAnswer } from "./damage-thread.ts";
import { lowerPriority } from "./thread-priority.ts";

lowerPriority();
const answer: DamageAnswer = { damage: await findDamage(workerData as string, everything) };
parentPort?.postMessage(answer);
