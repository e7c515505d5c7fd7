import { parentPort } from "node:worker_threads";
import type { BatchAnswer } from "./batch-thread.ts";
import { type EncodingOrder, encodeOrder } from "./batch-value.ts";

parentPort?.on("message", (order: EncodingOrder) => {
  const values = encodeOrder(order);
  const answer: BatchAnswer = { values };
  parentPort?.postMessage(answer, [values.bytes.buffer as ArrayBuffer]);
});
const ready: BatchAnswer = {};
parentPort?.postMessage(ready);
