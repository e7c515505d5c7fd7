import { parentPort, workerData } from "node:worker_threads";
import { everything, findDamage } from "./damage.ts";
import type { DamageAnswer } from "./damage-thread.ts";

const answer: DamageAnswer = { damage: await findDamage(workerData as string, everything) };
parentPort?.postMessage(answer);
