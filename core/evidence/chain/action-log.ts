import { type ApprovalStep, isConsuming } from "../../action/approval.ts";
import type { DurableDecision } from "../../action/authorized-action.ts";
import type { BatchOperation, CommitHook, DecisionCommitHook } from "../../action/commit-hook.ts";
import type { ActionEnvelope, Outcome } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import type { Evaluation } from "../../action/evaluation.ts";
import { fingerprint } from "../../action/fingerprint.ts";
import type { Random } from "../../action/id.ts";
import type { Json } from "../../action/json.ts";
import { releaseHeld, sealHeld } from "../private/held-action.ts";

import type { FieldHider, HiddenValue } from "../private/private-field.ts";
import { type EvidenceStore, openKey, openRange } from "../record/key-space.ts";
import type { ChainTable, EvidenceChain } from "./chain-table.ts";

import { type Bound, decisionBody, outcomeBody } from "./seal.ts";
import type { Writer } from "./writer.ts";

interface ActionLogParts {
  readonly chains: ChainTable;
  readonly open: OpenDecisions;
  readonly writer: Writer;
  readonly hider: FieldHider;
  readonly random: Random;
  readonly storeLabels: boolean;
  /** Throws EVIDENCE_UNAVAILABLE where a record would not be taken; nothing comes between it and the append. */
  readonly admit: (kind: "bounded" | "outcome") => void;
}

/** The two steps of each action: what was decided, and what came of it. Their values lie apart from the chain. */
export class ActionLog {
  readonly #parts: ActionLogParts;

  constructor(parts: ActionLogParts) {
    this.#parts = parts;
  }

  async recordDecision(
    action: ActionEnvelope,
    evaluation: Evaluation,
    step?: ApprovalStep,
    commitHook?: DecisionCommitHook,
  ): Promise<DurableDecision> {
    const { chains, open, writer, hider, admit } = this.#parts;
    checkSubject(action, evaluation);
    const chain = await chains.open(action.tenant);
    const dispatched = evaluation.decision === "allow" || (step !== undefined && isConsuming(step));
    if (evaluation.decision !== "block") commitHook?.check();
    if (dispatched) open.checkRoom(action.tenant, action.id);
    admit("bounded");
    const hidden = hider.hide(action.tool, action.arguments);
    const bound = {
      fingerprint: chain.wrapping.commitFingerprint(fingerprint(action)),
      argumentsDigest: hidden.digest,
    };
    const key = openKey(action.tenant, action.id);
    const { seq, durable } = writer.appendAction(
      chain,
      decisionBody(this.#tell(action), evaluation, bound, step?.approval, commitHook?.use(dispatched)),
      { arguments: hidden.fields },
      (at) => [
        ...(dispatched ? ([{ type: "put", key, value: String(at) }] as const) : []),
        ...(step === undefined ? [] : this.#take(chain, at, step)),
        ...(commitHook?.operations(dispatched) ?? []),
      ],
    );
    if (dispatched) await open.registerPending(action.tenant, action.id, bound, durable);
    else await durable;
    return { actionId: action.id, evaluationId: evaluation.id, seq };
  }

  async recordOutcome(
    action: ActionEnvelope,
    outcome: Outcome,
    judged?: Evaluation,
    commitHook?: Pick<CommitHook, "operations">,
  ): Promise<void> {
    const { chains, open, writer, hider, admit } = this.#parts;
    if (judged !== undefined) checkSubject(action, judged);
    const chain = await chains.open(action.tenant);
    // Taken even if it cannot be written now: the next repair or start then finds it abandoned.
    const bound = open.claimPending(action.tenant, action.id);
    admit("outcome");
    const hidden = outcome.status === "unknown" ? undefined : hideOutput(hider, action, outcome.output, judged);
    const body = outcomeBody(this.#tell(action), outcome, judged, bound, hidden?.digest);
    const disclosure = hidden === undefined ? undefined : { output: hidden.fields };
    const key = openKey(action.tenant, action.id);
    const operations = (): BatchOperation[] => [{ type: "del", key }, ...(commitHook?.operations() ?? [])];
    await writer.appendAction(chain, body, disclosure, operations).durable;
  }

  /** What happens to an approval with the decision `seq`. */
  #take(
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

  /** The action as its records may tell it. */
  #tell(action: ActionEnvelope): ActionEnvelope {
    const { id, transport } = action.session;
    return this.#parts.storeLabels ? action : { ...action, session: { id, transport } };
  }
}

/** A policy that could not answer may be the one that would have redacted: of what it saw, nothing is kept. */
function hideOutput(
  hider: FieldHider,
  action: ActionEnvelope,
  output: Json,
  judged: Evaluation | undefined,
): HiddenValue {
  const isJudged = judged === undefined || judged.verdicts.every(({ error }) => error === undefined);
  return isJudged ? hider.hide(action.tool, output) : hider.withhold(output);
}

function checkSubject(action: ActionEnvelope, evaluation: Evaluation): void {
  if (evaluation.actionId !== action.id) throw new TypeError("evidence: the evaluation is of another action");
}

/** A dispatched decision in the store that nobody is going to bring the outcome of. */
export interface Abandoned {
  readonly tenant: string;
  readonly seq: number;
}

/**
 * The dispatched decisions whose outcome this process still owes: at most `limit` over all tenants.
 * The store keeps the same set (`openKey`), and is ahead of this one exactly by what was abandoned.
 */
export class OpenDecisions {
  readonly #limit: number;
  readonly #bounds = new Map<string, Bound>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Throws EVIDENCE_UNAVAILABLE when one more would be too many, TypeError when the action is open already. */
  checkRoom(tenant: string, actionId: string): void {
    if (this.#bounds.has(openKey(tenant, actionId)))
      throw new TypeError("evidence: the action's decision is already open");
    if (this.#bounds.size < this.#limit) return;
    throw new GatewayError("EVIDENCE_UNAVAILABLE", `more than ${this.#limit} actions wait for their outcome`);
  }

  /** Holds the decision open as soon as it is sealed; lets go, and rejects, where it did not become durable. */
  async registerPending(tenant: string, actionId: string, bound: Bound, durable: Promise<void>): Promise<void> {
    const key = openKey(tenant, actionId);
    this.#bounds.set(key, bound);
    try {
      await durable;
    } catch (error) {
      this.#bounds.delete(key);
      throw error;
    }
  }

  /** Ends an open decision. Throws TypeError when there is none: no outcome without, or twice for, a decision. */
  claimPending(tenant: string, actionId: string): Bound {
    const key = openKey(tenant, actionId);
    const bound = this.#bounds.get(key);
    if (bound === undefined) throw new TypeError("evidence: expected an open decision of this action, got none");
    this.#bounds.delete(key);
    return bound;
  }

  /** What is open in the store and not here. Call while nothing is appended. */
  async findAbandoned(store: EvidenceStore, tenants: readonly string[]): Promise<Abandoned[]> {
    const found: Abandoned[] = [];
    for (const tenant of tenants) {
      for await (const [key, seq] of store.iterator(openRange(tenant))) {
        if (!this.#bounds.has(key)) found.push({ tenant, seq: Number(seq) });
      }
    }
    return found;
  }
}
