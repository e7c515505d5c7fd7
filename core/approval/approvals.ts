import { isFinal } from "../action/approval.ts";
import type { ActionEnvelope } from "../action/envelope.ts";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import { ApprovalBook, type BookParts } from "./book.ts";
import { Expiry } from "./expiry.ts";
import type { ApprovalStanding } from "./live-table.ts";
import { ApprovalQueue } from "./queue.ts";
import { ApprovalReview, type ReviewRule } from "./review.ts";
import { bringBack } from "./start.ts";

const absent: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["NOT_FOUND", "APPROVAL_INCOMPLETE"]);

export interface ApprovalsParts extends BookParts {
  readonly rule: ReviewRule;
  /** Whose approvals to bring back. */
  readonly tenants: readonly string[];
  /** UUIDv7. */
  readonly newId: () => string;
  readonly onWarning: (message: string, fields: object) => void;
}

/** The approvals of a running gateway: where actions wait, where people answer, and how what nobody uses ends. */
export class Approvals {
  readonly book: ApprovalBook;
  readonly queue: ApprovalQueue;
  readonly review: ApprovalReview;
  readonly expiry: Expiry;

  private constructor(parts: ApprovalsParts) {
    this.book = new ApprovalBook(parts);
    this.expiry = new Expiry(this.book, parts.onWarning);
    this.queue = new ApprovalQueue(this.book, this.expiry, parts.newId);
    this.review = new ApprovalReview(this.book, this.expiry, parts.rule);
  }

  /** Brings back what outlives a start, ends the rest on record, and begins to watch the time. */
  static async open(parts: ApprovalsParts): Promise<Approvals> {
    const approvals = new Approvals(parts);
    await bringBack(approvals.book, approvals.expiry, parts.tenants, parts.onWarning);
    approvals.expiry.start();
    return approvals;
  }

  /** How the approvals of all tenants stand now. */
  standing(): ApprovalStanding {
    return this.book.live.standing(this.book.parts.limits);
  }

  /**
   * The action that an evaluation held, for as long as it waits or may be used; undefined where it is not kept whole, or
   * another evaluation held the action of this approval.
   */
  async findHeld(tenant: string, id: string, evaluationId: string): Promise<ActionEnvelope | undefined> {
    try {
      const approval = await this.book.find(tenant, id);
      if (approval.evaluation.id !== evaluationId || isFinal(approval.state)) return undefined;
      return (await this.review.held(approval)).action;
    } catch (error) {
      if (error instanceof GatewayError && absent.has(error.code)) return undefined;
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.expiry.stop();
  }
}
