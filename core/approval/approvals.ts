import { isFinal } from "../action/approval.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import { ApprovalStore, type ApprovalStoreOptions } from "./approval-store.ts";
import { ApprovalExpiry } from "./expiry.ts";
import type { ApprovalStatus } from "./live-approvals.ts";
import { ApprovalQueue } from "./queue.ts";
import { restoreApprovals } from "./restore.ts";
import { ApprovalReview, type ReviewRule } from "./review.ts";

const absenceCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["NOT_FOUND", "APPROVAL_INCOMPLETE"]);

export interface ApprovalsOptions extends ApprovalStoreOptions {
  readonly rule: ReviewRule;
  /** The tenants whose approvals are restored. */
  readonly tenants: readonly string[];
  /** UUIDv7. */
  readonly newId: () => string;
  readonly onWarning: (event: string, fields: object) => void;
}

/** The approvals of a running gateway: the queue of held actions, their review, and their expiry. */
export class Approvals {
  readonly store: ApprovalStore;
  readonly queue: ApprovalQueue;
  readonly review: ApprovalReview;
  readonly expiry: ApprovalExpiry;

  private constructor(options: ApprovalsOptions) {
    this.store = new ApprovalStore(options);
    this.expiry = new ApprovalExpiry(this.store, options.onWarning);
    this.queue = new ApprovalQueue(this.store, this.expiry, options.newId);
    this.review = new ApprovalReview(this.store, this.expiry, options.rule);
  }

  /** Restores the approvals that survive a start, expires the others on record, and starts the expiry timer. */
  static async open(options: ApprovalsOptions): Promise<Approvals> {
    const approvals = new Approvals(options);
    await restoreApprovals(approvals.store, approvals.expiry, options.tenants, options.onWarning);
    approvals.expiry.start();
    return approvals;
  }

  /** Counts the live approvals of all tenants. */
  status(): ApprovalStatus {
    return this.store.live.status(this.store.options.limits);
  }

  /**
   * Finds the action that an evaluation held, while its approval is pending or usable. Undefined where it is not kept
   * whole, or another evaluation held the action of this approval.
   */
  async findHeld(tenant: string, id: string, evaluationId: string): Promise<ActionEnvelope | undefined> {
    try {
      const approval = await this.store.find(tenant, id);
      if (approval.evaluation.id !== evaluationId || isFinal(approval.state)) return undefined;
      return (await this.review.readHeld(approval)).action;
    } catch (error) {
      if (error instanceof GatewayError && absenceCodes.has(error.code)) return undefined;
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.expiry.stop();
  }
}
