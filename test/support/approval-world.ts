import { randomBytes } from "node:crypto";
import type { Approval, FormerApproval } from "../../core/action/approval.ts";
import type { ActionEnvelope } from "../../core/action/envelope.ts";
import type { Evaluation } from "../../core/action/evaluation.ts";
import { uuidV7 } from "../../core/action/id.ts";
import { type Principal, principalId } from "../../core/action/principal.ts";
import type { Role } from "../../core/action/role.ts";
import { Approvals, type ApprovalsOptions } from "../../core/approval/approvals.ts";
import { approvalParticipant } from "../../core/approval/participant.ts";
import { authorize, type GateResult } from "../../core/road/authorize.ts";
import { LedgerWorld, makeEvaluation } from "./ledger-world.ts";
import { pendingOf } from "./road-world.ts";

/** A reviewer of tenant `acme`, or of another. */
export function reviewer(name: string, role: Role = "operator", tenant = "acme"): Principal {
  return { id: principalId(tenant, `sha256:${name}`), tenant, role, keyId: name };
}

/** What became of one attempt. */
export interface Attempted {
  /** Whether it was permitted; what would then be dispatched. */
  readonly permitted: boolean;
  readonly review: "held" | "denied" | "full" | null;
  readonly approval: Approval | undefined;
  readonly former: FormerApproval | undefined;
}

/** The approvals of a gateway on a real ledger and a real store; time is the test's. */
export class ApprovalWorld {
  readonly ledger: LedgerWorld;
  readonly announced: Approval[] = [];
  monotonicMs = 0;
  /** Asked before and after each write: false before loses it, false after keeps it and calls it failed. */
  holdsStore: () => boolean = () => true;
  #approvals: Approvals | null = null;

  private constructor(ledger: LedgerWorld) {
    this.ledger = ledger;
  }

  static async create(over: Partial<ApprovalsOptions> = {}): Promise<ApprovalWorld> {
    const world = new ApprovalWorld(await LedgerWorld.create());
    await world.open(over);
    return world;
  }

  get approvals(): Approvals {
    if (this.#approvals === null) throw new Error("the world has no approvals open");
    return this.#approvals;
  }

  async open(over: Partial<ApprovalsOptions> = {}): Promise<void> {
    const ledger = await this.ledger.open({ holdsStore: () => this.holdsStore() });
    this.#approvals = await Approvals.open({
      store: this.ledger.store,
      journal: ledger.approvals,
      limits: {
        reviewMs: 1_800_000,
        useMs: 900_000,
        keySharePercent: 25,
        maxLive: 1_000,
        maxHeldBytes: 64 * 1024 * 1024,
      },
      rule: { allowSelfReview: false, allowBreakGlass: false },
      clock: this.ledger.clock.now,
      gatewayTime: () => this.monotonicMs,
      tenants: ledger.status().map(({ tenant }) => tenant),
      newId: () => uuidV7(this.ledger.clock.nowMs, randomBytes(10)),
      onChange: (approval) => this.announced.push(approval),
      onWarning: (message, fields) => this.ledger.warnings.push({ message, fields }),
      ...over,
    });
  }

  /** Ends this process's part. */
  async close(): Promise<void> {
    await this.#approvals?.close();
    await this.ledger.close();
    this.#approvals = null;
  }

  async restart(over: Partial<ApprovalsOptions> = {}): Promise<void> {
    await this.close();
    await this.open(over);
  }

  async remove(): Promise<void> {
    await this.close();
    await this.ledger.remove();
  }

  /** Lets `ms` pass, by every measure. */
  pass(ms: number): void {
    this.monotonicMs += ms;
    this.ledger.clock.nowMs += ms;
  }

  /** Takes an action that policy holds for review as far as the gate, on record. */
  async attempt(action: ActionEnvelope, evaluation?: Evaluation): Promise<Attempted> {
    const judged = evaluation ?? makeEvaluation(action, "review");
    const participation = approvalParticipant(this.approvals.queue).participation;
    if (participation === undefined) throw new Error("expected the approvals to take part");
    const pending = pendingOf(action, judged);
    let gated: GateResult;
    try {
      gated = await authorize(this.ledger.ledger.actions, [participation], pending);
    } finally {
      if (pending.review !== null) participation.settleReview?.(pending.review, pending.isCommitted);
    }
    if (gated.permission !== null)
      await this.ledger.ledger.actions.recordOutcome(action, { status: "success", output: {} });
    return attempted(gated);
  }

  /** The judgement that holds an action until so many have said yes. */
  evaluate(action: ActionEnvelope, approvals: number): Evaluation {
    return { ...makeEvaluation(action, "review"), approvals };
  }

  /** The id of the approval that an action waits for. */
  async hold(action: ActionEnvelope): Promise<string> {
    const { approval } = await this.attempt(action);
    if (approval === undefined) throw new Error("expected the action to be held");
    return approval.id;
  }

  /** The text of the entry as it lies in the store. */
  async stored(id: string, tenant = "acme"): Promise<Approval> {
    return JSON.parse((await this.ledger.store.get(`${tenant}/approval/${id}`)) ?? "null") as Approval;
  }

  /** Lays an entry into the store by hand, among the live ones. */
  async lay(id: string, text: string, tenant = "acme"): Promise<void> {
    await this.ledger.store.put(`${tenant}/approval/${id}`, text);
    await this.ledger.store.put(`${tenant}/approval-live/${id}`, "");
  }

  async approve(id: string, by: Principal = reviewer("rita")): Promise<Approval> {
    return this.approvals.review.approve(id, by, { scope: "exact" });
  }
}

function attempted(gated: GateResult): Attempted {
  const review = gated.permission === null ? gated.review : null;
  return {
    permitted: gated.permission !== null,
    review: review?.kind ?? null,
    approval: review !== null && "approval" in review ? review.approval : undefined,
    former: review?.kind === "held" ? review.former : undefined,
  };
}
