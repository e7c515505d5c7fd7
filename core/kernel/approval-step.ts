import type { ApprovalState } from "./approval.ts";
import type { Operation } from "./operation.ts";

/** What an approval adds to the decision about an action: all of it happens with the decision, or nothing. */
export interface ApprovalStep {
  /** As the decision's record tells it. */
  readonly approval: {
    readonly fingerprint: string;
    readonly id: string;
    readonly reviewer: string | null;
    readonly state: ApprovalState;
  };
  /** JSON text of the HeldAction to keep, sealed, with this decision; null where nothing new is held. */
  readonly holds: string | null;
  /** The decision whose sealed action is deleted now; null where none is. */
  readonly releases: number | null;
  /** The approval's own entry; `seq` is the decision's. */
  readonly operations: (seq: number) => readonly Operation[];
}

/** Whether the action is dispatched for its approval. */
export function isConsuming(step: ApprovalStep): boolean {
  return step.approval.state === "consumed";
}
