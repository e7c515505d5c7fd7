import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { GatewayError } from "../../action/error.ts";
import { Pace, type Rhythm } from "../../store/pace.ts";
import { lowerPriority } from "../../store/thread-priority.ts";
import type { Mark } from "../chain/high-water.ts";
import { type Cut, findCut } from "../retention/cut.ts";
import { findGoing } from "../retention/record-sweep.ts";
import type { RecordRules } from "../verify/record-rule.ts";
import { type VerifyReport, verifyView } from "../verify/verification.ts";
import { RemoteView, type ViewQuestion } from "./remote-view.ts";

/** The work of a thread. */
export type ChainTask =
  | { readonly kind: "verify"; readonly tenant: string; readonly mark: Mark | undefined }
  | { readonly kind: "cut"; readonly tenant: string; readonly from: number; readonly before: string }
  | { readonly kind: "sweep"; readonly tenant: string; readonly firstKept: number };

/** The task of a thread, and its pace. Without a rhythm it does not rest. */
export interface ChainOrder {
  readonly task: ChainTask;
  readonly rhythm: Rhythm | undefined;
}

export type ChainResult = VerifyReport | Cut | undefined;

/** The messages of a thread. The last is `done`, or `failed` with an error that the reading itself met. */
export type ChainMessage =
  | (ViewQuestion & { readonly id: number })
  | { readonly ask: "progress"; readonly done: number }
  | { readonly ask: "done"; readonly result: ChainResult }
  | { readonly ask: "failed"; readonly code: GatewayError["code"]; readonly detail: string | undefined };

/** Does the work that this thread was begun with, and says what came out. */
export async function runChainTask(rules: RecordRules): Promise<void> {
  const port = parentPort;
  if (port === null) throw new TypeError("runChainTask: expected to be on a thread of its own");
  lowerPriority();
  const say = (message: ChainMessage): void => port.postMessage(message);
  try {
    say({ ask: "done", result: await runTask(port, workerData as ChainOrder, rules) });
  } catch (error) {
    const { code, detail } = GatewayError.from(error);
    say({ ask: "failed", code, detail });
  }
}

async function runTask(port: MessagePort, { task, rhythm }: ChainOrder, rules: RecordRules): Promise<ChainResult> {
  const view = new RemoteView(port);
  const pace = rhythm && new Pace({ ...rhythm, elapsedMs: () => performance.now() });
  switch (task.kind) {
    case "verify": {
      const onProgress = (done: number): void => port.postMessage({ ask: "progress", done } satisfies ChainMessage);
      return verifyView(view, task.tenant, task.mark, rules, { onProgress, pace });
    }
    case "cut":
      return findCut(view, task.tenant, task.from, task.before, pace);
    case "sweep":
      await findGoing(view, task.tenant, task.firstKept, (going) => view.report(going), pace);
      return undefined;
  }
}
