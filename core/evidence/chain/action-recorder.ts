import { type ApprovalStep, isConsuming } from "../../action/approval.ts";
import type { DurableDecision } from "../../action/authorized-action.ts";
import type { BatchOperation, CommitHook, DecisionCommitHook } from "../../action/commit-hook.ts";
import type { ActionEnvelope, Outcome } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import type { Evaluation } from "../../action/evaluation.ts";
import { fingerprint } from "../../action/fingerprint.ts";
import type { Random } from "../../action/id.ts";
import { releaseHeld, sealHeld } from "../private/held-action.ts";
import type { FieldHider } from "../private/private-field.ts";
import { type EvidenceStore, openKey, openRange } from "../record/key-space.ts";
import type { ChainTable, EvidenceChain } from "./chain-table.ts";
import { type ActionCommitments, decisionContent, outcomeContent } from "./seal.ts";
import type { Writer } from "./writer.ts";

interface ActionRecorderParts {
  readonly chains: ChainTable;
  readonly open: OpenDecisions;
  readonly writer: Writer;
  readonly hider: FieldHider;
  readonly random: Random;
  /** False leaves the labels of sessions out of records. */
  readonly storeLabels: boolean;
}

/** Records the two steps of each action: the decision and the outcome. Their private values lie apart from the chain. */
export class ActionRecorder {
  readonly #parts: ActionRecorderParts;

  constructor(parts: ActionRecorderParts) {
    this.#parts = parts;
  }

  /** See `Ledger.recordDecision`. */
  async recordDecision(
    action: ActionEnvelope,
    evaluation: Evaluation,
    step?: ApprovalStep,
    commitHook?: DecisionCommitHook,
  ): Promise<DurableDecision> {
    const { chains, open, writer, hider } = this.#parts;
    const { id, tenant } = action;
    checkSubject(action, evaluation);
    const chain = await chains.open(tenant);
    const dispatched = evaluation.decision === "allow" || (step !== undefined && isConsuming(step));
    const use = evaluation.decision === "block" ? undefined : commitHook?.check(dispatched);
    if (dispatched) open.checkRoom(tenant, id);
    writer.admit("bounded");
    const hidden = hider.hide(action.tool, action.arguments);
    const commitments = {
      fingerprint: chain.wrapping.commitFingerprint(fingerprint(action)),
      argumentsDigest: hidden.digest,
    };
    const content = decisionContent(this.#redactLabels(action), evaluation, commitments, step?.approval, use);
    const operationsAt = (at: number): BatchOperation[] => {
      const operations: BatchOperation[] = [];
      if (dispatched) operations.push({ type: "put", key: openKey(tenant, id), value: String(at) });
      if (step !== undefined) operations.push(...this.#approvalOperations(chain, at, step));
      if (commitHook !== undefined) operations.push(...commitHook.operations(dispatched));
      return operations;
    };
    const { seq, durable } = writer.appendAction(chain, content, { arguments: hidden.fields }, operationsAt);
    if (dispatched) await open.registerPending(tenant, id, commitments, durable);
    else await durable;
    return { actionId: id, evaluationId: evaluation.id, seq };
  }

  /** See `Ledger.recordOutcome`. */
  async recordOutcome(
    action: ActionEnvelope,
    outcome: Outcome,
    judged?: Evaluation,
    commitHook?: Pick<CommitHook, "operations">,
  ): Promise<void> {
    const { chains, open, writer, hider } = this.#parts;
    const { id, tenant, tool } = action;
    if (judged !== undefined) checkSubject(action, judged);
    const chain = await chains.open(tenant);
    // Claimed even if the outcome cannot be written now: the next repair or start then finds the decision abandoned.
    const commitments = open.claimPending(tenant, id);
    writer.admit("outcome");
    let hidden: ReturnType<FieldHider["hide"]> | undefined;
    if (outcome.status !== "unknown") {
      // A policy that failed may be the one that would have redacted: nothing is kept of an output that it saw.
      const isJudged = judged === undefined || judged.verdicts.every(({ error }) => error === undefined);
      hidden = isJudged ? hider.hide(tool, outcome.output) : hider.withhold(outcome.output);
    }
    const content = outcomeContent(this.#redactLabels(action), outcome, judged, commitments, hidden?.digest);
    const operationsAt = (): BatchOperation[] => [
      { type: "del", key: openKey(tenant, id) },
      ...(commitHook?.operations() ?? []),
    ];
    await writer.appendAction(chain, content, hidden && { output: hidden.fields }, operationsAt).durable;
  }

  /** The writes of an approval that commit with the decision `seq`. */
  #approvalOperations(
    { tenant, id, wrapping }: EvidenceChain,
    seq: number,
    { holds, releases, operations }: ApprovalStep,
  ): BatchOperation[] {
    const place = { tenant, chain: id, seq };
    return [
      ...operations(seq),
      ...(holds === null ? [] : [sealHeld(wrapping, place, holds, this.#parts.random)]),
      ...(releases === null ? [] : [releaseHeld(tenant, releases)]),
    ];
  }

  #redactLabels(action: ActionEnvelope): ActionEnvelope {
    const { id, transport } = action.session;
    return this.#parts.storeLabels ? action : { ...action, session: { id, transport } };
  }
}

function checkSubject(action: ActionEnvelope, evaluation: Evaluation): void {
  if (evaluation.actionId !== action.id) throw new TypeError("evidence: the evaluation is of another action");
}

/** A dispatched decision in the store whose outcome no process will record. */
export interface Abandoned {
  readonly tenant: string;
  readonly seq: number;
}

/**
 * The dispatched decisions of this process whose outcome is pending: at most `limit` over all tenants.
 * The store keeps the same set (`openKey`), and exceeds this one exactly by the abandoned decisions.
 */
export class OpenDecisions {
  readonly #limit: number;
  readonly #pending = new Map<string, ActionCommitments>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Throws EVIDENCE_UNAVAILABLE when one more would be too many, TypeError when the action is open already. */
  checkRoom(tenant: string, actionId: string): void {
    if (this.#pending.has(openKey(tenant, actionId))) {
      throw new TypeError("evidence: the action's decision is already open");
    }
    if (this.#pending.size < this.#limit) return;
    throw new GatewayError("EVIDENCE_UNAVAILABLE", `more than ${this.#limit} actions wait for their outcome`);
  }

  /** Registers a decision as soon as it is sealed; removes it, and rejects, where it did not become durable. */
  async registerPending(
    tenant: string,
    actionId: string,
    commitments: ActionCommitments,
    durable: Promise<void>,
  ): Promise<void> {
    const key = openKey(tenant, actionId);
    this.#pending.set(key, commitments);
    try {
      await durable;
    } catch (error) {
      this.#pending.delete(key);
      throw error;
    }
  }

  /** Removes an open decision and returns its commitments. Throws TypeError without one: each has exactly one outcome. */
  claimPending(tenant: string, actionId: string): ActionCommitments {
    const key = openKey(tenant, actionId);
    const commitments = this.#pending.get(key);
    if (commitments === undefined) throw new TypeError("evidence: expected an open decision of this action, got none");
    this.#pending.delete(key);
    return commitments;
  }

  /** Lists what is open in the store and not pending here. Call while nothing is appended. */
  async findAbandoned(store: EvidenceStore, tenants: readonly string[]): Promise<Abandoned[]> {
    const found: Abandoned[] = [];
    for (const tenant of tenants) {
      for await (const [key, seq] of store.iterator(openRange(tenant))) {
        if (!this.#pending.has(key)) found.push({ tenant, seq: Number(seq) });
      }
    }
    return found;
  }
}
