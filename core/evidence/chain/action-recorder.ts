import { type ActionFacts, factKinds } from "../../action/action-fact.ts";
import { type ApprovalStep, isConsuming } from "../../action/approval.ts";
import type { DurableDecision } from "../../action/authorized-action.ts";
import type { TicketUse } from "../../action/capability-ticket.ts";
import type { BatchOperation, CommitHook, DecisionCommitHook } from "../../action/commit-hook.ts";
import type { ActionEnvelope, Outcome, Pause } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import type { Evaluation } from "../../action/evaluation.ts";
import { fingerprint, fingerprintInTurns } from "../../action/fingerprint.ts";
import type { Random } from "../../action/id.ts";
import { isLarge } from "../../action/json.ts";
import { turnsOf } from "../../store/pace.ts";
import { releaseHeld, sealHeld } from "../private/held-action.ts";
import type { FieldHider, HiddenValue } from "../private/private-field.ts";
import { type EvidenceStore, openKey, openRange } from "../record/key-space.ts";
import type { RecordedEvaluation } from "../record/record.ts";
import type { ChainTable, EvidenceChain } from "./chain-table.ts";
import { PieceWriter, type WrittenFields } from "./piece-writer.ts";
import { type ActionCommitments, decisionContent, outcomeContent, recordEvaluation } from "./seal.ts";
import type { Writer } from "./writer.ts";

/** Called with the bytes of a piece of a large output, which take time to write that no turn of its own shows. */
export type Stored = (action: Pick<ActionEnvelope, "tenant" | "principal">, bytes: number) => void;

interface ActionRecorderParts {
  readonly chains: ChainTable;
  readonly writer: Writer;
  readonly hider: FieldHider;
  readonly random: Random;
  /** False leaves the labels of sessions out of records. */
  readonly storeLabels: boolean;
  /** Dispatched decisions whose outcome may be pending, over all tenants. */
  readonly limit: number;
  readonly pause: Pause;
  readonly stored: Stored;
}

/** The commitments to the arguments and facts of an action, and their private fields. */
interface PreparedFields {
  readonly commitments: ActionCommitments;
  readonly written: WrittenFields;
}

/** A dispatched decision in the store whose outcome no process will record. */
export interface Abandoned {
  readonly tenant: string;
  readonly seq: number;
}

/** Records the two steps of each action: the decision and the outcome. Their private values lie apart from the chain. */
export class ActionRecorder {
  readonly #parts: ActionRecorderParts;
  /**
   * The dispatched decisions of this process whose outcome is pending, by their key in the store. The store keeps the same
   * set, and exceeds this one exactly by the abandoned decisions.
   */
  readonly #pending = new Map<string, ActionCommitments>();
  readonly #pieces: PieceWriter;

  constructor(parts: ActionRecorderParts) {
    this.#parts = parts;
    this.#pieces = new PieceWriter(parts.writer.commit, parts.random);
  }

  /**
   * Records a decision with the writes of `hooks`; call before anything is dispatched. The effect is `dispatched` for `allow`
   * and where `step` consumes an approval (an outcome is then pending), and `not_dispatched` otherwise. Large arguments are
   * prepared and written in turns of their own, behind those of the large record before; from the checks of the hooks on, everything
   * happens in one turn.
   */
  async recordDecision(
    action: ActionEnvelope,
    evaluation: Evaluation,
    step?: ApprovalStep,
    hooks: readonly DecisionCommitHook[] = [],
  ): Promise<DurableDecision> {
    const { chains, pause } = this.#parts;
    if (evaluation.actionId !== action.id) throw otherAction();
    const chain = chains.peek(action.tenant) ?? (await chains.open(action.tenant));
    const hasTurns = isLarge(action.arguments);
    // Facts of no kind are a search of the arguments, which are committed to.
    let hasKind = false;
    for (const kind of factKinds) hasKind ||= action.facts?.[kind] !== undefined;
    const facts = hasKind ? action.facts : undefined;
    const prepared = hasTurns ? await this.#prepareInTurns(chain, action, facts) : this.#prepare(chain, action, facts);
    const { pieces } = prepared.written;
    let durable: DurableDecision;
    try {
      durable = await this.#writeDecision(chain, action, evaluation, prepared, step, hooks);
    } finally {
      if (pieces !== undefined) await pieces.end();
    }
    // All who share a batch go on in the same turn.
    if (hasTurns) await pause(action);
    return durable;
  }

  async #writeDecision(
    chain: EvidenceChain,
    action: ActionEnvelope,
    evaluation: Evaluation,
    { commitments, written }: PreparedFields,
    step: ApprovalStep | undefined,
    hooks: readonly DecisionCommitHook[],
  ): Promise<DurableDecision> {
    const { writer, random, storeLabels, limit } = this.#parts;
    const dispatched = evaluation.decision === "allow" || isConsuming(step);
    const pendingKey = openKey(action.tenant, action.id);
    const checks = evaluation.decision === "block" ? [] : hooks;
    let use: TicketUse | undefined;
    for (const hook of checks) use = hook.check?.(action, dispatched) ?? use;
    if (dispatched && this.#pending.has(pendingKey)) {
      throw new TypeError("evidence: the action's decision is already open");
    }
    if (dispatched && this.#pending.size >= limit) {
      throw new GatewayError("EVIDENCE_UNAVAILABLE", `more than ${limit} actions wait for their outcome`);
    }
    writer.commit.admit("bounded");
    const recorded = storeLabels ? action : withoutLabel(action);
    const placed = writer.sealAction(chain, decisionContent(recorded, evaluation, commitments, step?.approval, use));
    const { seq } = placed.sealed.record;
    const operations: BatchOperation[] = [];
    if (dispatched) operations.push({ type: "put", key: pendingKey, value: String(seq) });
    if (step !== undefined) operations.push(...approvalOperations(chain, seq, step, random));
    for (const hook of hooks) operations.push(...(hook.operations?.(dispatched) ?? []));
    if (written.pieces !== undefined) operations.push(...written.pieces.take(seq));
    const durable = writer.appendAction(chain, placed, operations, written.text);
    if (dispatched) this.#pending.set(pendingKey, commitments);
    try {
      await durable;
    } catch (error) {
      if (dispatched) this.#pending.delete(pendingKey);
      throw error;
    }
    return { actionId: action.id, evaluationId: evaluation.id, seq };
  }

  /**
   * Records the outcome of a dispatched action; `judged` is the evaluation of its output. Throws TypeError where no decision
   * is open: each has exactly one outcome.
   */
  async recordOutcome(
    action: ActionEnvelope,
    outcome: Outcome,
    judged?: Evaluation,
    commitHook?: Pick<CommitHook, "operations">,
  ): Promise<void> {
    const { chains, hider, pause, stored } = this.#parts;
    if (judged !== undefined && judged.actionId !== action.id) throw otherAction();
    const chain = chains.peek(action.tenant) ?? (await chains.open(action.tenant));
    const evaluation = judged && recordEvaluation(judged);
    // A policy that failed may be the one that would have redacted: nothing is kept of an output that it saw.
    const isKept = evaluation === undefined || evaluation.errors.length === 0;
    const hasTurns = outcome.status !== "unknown" && isLarge(outcome.output);
    let hidden: HiddenValue | undefined;
    let written: WrittenFields | undefined;
    try {
      if (hasTurns) {
        const turns = turnsOf(() => pause(action));
        await turns.next();
        hidden = await hider.hideInTurns(action.tool, outcome.output, turns, isKept);
        await turns.next();
        const value = { output: hidden.fields };
        const onPiece = (bytes: number): void => stored(action, bytes);
        written = await this.#pieces.write({ chain, value, kind: "outcome", turns, onPiece });
      } else if (outcome.status !== "unknown") {
        hidden = hider.hide(action.tool, outcome.output, isKept);
        written = { text: JSON.stringify({ output: hidden.fields }) };
      }
    } catch (error) {
      this.#pending.delete(openKey(action.tenant, action.id));
      throw error;
    }
    const pieces = written?.pieces;
    try {
      const fields = { digest: hidden?.digest, written };
      await this.#writeOutcome(chain, action, outcome, evaluation, fields, commitHook);
    } finally {
      if (pieces !== undefined) await pieces.end();
    }
    // All who share a batch go on in the same turn.
    if (hasTurns) await pause(action);
  }

  async #writeOutcome(
    chain: EvidenceChain,
    action: ActionEnvelope,
    outcome: Outcome,
    evaluation: RecordedEvaluation | undefined,
    { digest, written }: { readonly digest: string | undefined; readonly written: WrittenFields | undefined },
    commitHook: Pick<CommitHook, "operations"> | undefined,
  ): Promise<void> {
    const { writer, storeLabels } = this.#parts;
    const pendingKey = openKey(action.tenant, action.id);
    const commitments = this.#pending.get(pendingKey);
    if (commitments === undefined) throw new TypeError("evidence: expected an open decision of this action, got none");
    // Closed even if the outcome cannot be written now: the next repair or start then finds the decision abandoned.
    this.#pending.delete(pendingKey);
    writer.commit.admit("outcome");
    const recorded = storeLabels ? action : withoutLabel(action);
    const content = outcomeContent(recorded, outcome, evaluation, commitments, digest);
    const placed = writer.sealAction(chain, content);
    const operations: BatchOperation[] = [{ type: "del", key: pendingKey }];
    if (commitHook !== undefined) operations.push(...commitHook.operations());
    if (written?.pieces !== undefined) operations.push(...written.pieces.take(placed.sealed.record.seq));
    await writer.appendAction(chain, placed, operations, written?.text);
  }

  #prepare({ wrapping }: EvidenceChain, action: ActionEnvelope, facts: ActionFacts | undefined): PreparedFields {
    const { hider } = this.#parts;
    const hidden = hider.hide(action.tool, action.arguments);
    const fields = facts && hider.hideFacts(action, facts);
    return {
      commitments: {
        fingerprint: wrapping.commitFingerprint(fingerprint(action)),
        argumentsDigest: hidden.digest,
        facts: fields && { digest: fields.digest, effect: facts.effect },
      },
      written: { text: JSON.stringify({ arguments: hidden.fields, facts: fields?.fields }) },
    };
  }

  /** The same with a pause before, between and after the steps. What is too large for its record is durable then. */
  async #prepareInTurns(
    chain: EvidenceChain,
    action: ActionEnvelope,
    facts: ActionFacts | undefined,
  ): Promise<PreparedFields> {
    const { hider, pause } = this.#parts;
    const turns = turnsOf(() => pause(action));
    await turns.next();
    const committed = chain.wrapping.commitFingerprint(await fingerprintInTurns(action, turns));
    await turns.next();
    const hidden = await hider.hideInTurns(action.tool, action.arguments, turns);
    await turns.next();
    const fields = facts && (await hider.hideFactsInTurns(action, facts, turns));
    if (fields !== undefined) await turns.next();
    const value = { arguments: hidden.fields, ...(fields && { facts: fields.fields }) };
    const written = await this.#pieces.write({ chain, value, kind: "bounded", turns });
    return {
      commitments: {
        fingerprint: committed,
        argumentsDigest: hidden.digest,
        facts: fields && { digest: fields.digest, effect: facts.effect },
      },
      written,
    };
  }

  /** Returns the writes that delete the pieces of records that were never written. Call while nothing is appended. */
  findAbandonedPieces(store: EvidenceStore, tenants: readonly string[]): Promise<readonly BatchOperation[]> {
    return this.#pieces.findAbandoned(store, tenants);
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

/** The writes of an approval that commit with the decision `seq`. */
function approvalOperations(
  { tenant, id, wrapping }: EvidenceChain,
  seq: number,
  { holds, releases, operations }: ApprovalStep,
  random: Random,
): BatchOperation[] {
  const place = { tenant, chain: id, seq };
  return [
    ...operations(seq),
    ...(holds === null ? [] : [sealHeld(wrapping, place, holds, random)]),
    ...(releases === null ? [] : [releaseHeld(tenant, releases)]),
  ];
}

function withoutLabel(action: ActionEnvelope): ActionEnvelope {
  const { id, transport } = action.session;
  return { ...action, session: { id, transport } };
}

function otherAction(): TypeError {
  return new TypeError("evidence: the evaluation is of another action");
}
