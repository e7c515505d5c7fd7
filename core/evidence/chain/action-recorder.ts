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
import { sharedJsonInTurns } from "../../action/json-pieces.ts";
import { turnsOf } from "../../store/pace.ts";
import { releaseHeld, sealHeld } from "../private/held-action.ts";
import type { FieldHider, HiddenValue, PrivateEntry } from "../private/private-field.ts";
import { type EvidenceStore, openKey, openRange } from "../record/key-space.ts";
import type { RecordedEvaluation } from "../record/record.ts";
import type { BatchThread } from "./batch-thread.ts";
import { minLarge } from "./batch-value.ts";
import type { ChainTable, EvidenceChain } from "./chain-table.ts";
import { LargeLane } from "./large-lane.ts";
import { type ActionCommitments, decisionContent, outcomeContent, recordEvaluation } from "./seal.ts";
import type { Writer } from "./writer.ts";

/** Called with the characters of a large output, which take time to seal and write that no turn of its own shows. */
export type Stored = (action: Pick<ActionEnvelope, "tenant" | "principal">, characters: number) => void;

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
  readonly batchThread: BatchThread | undefined;
}

/** The commitments to the arguments and facts of an action, and the text of their private fields. */
interface PreparedFields {
  readonly commitments: ActionCommitments;
  readonly disclosure: PrivateEntry["text"];
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
  readonly #lane: LargeLane;

  constructor(parts: ActionRecorderParts) {
    this.#parts = parts;
    this.#lane = new LargeLane(parts.batchThread);
  }

  /**
   * Records a decision with the writes of `hooks`; call before anything is dispatched. The effect is `dispatched` for `allow`
   * and where `step` consumes an approval (an outcome is then pending), and `not_dispatched` otherwise. Large arguments are
   * prepared in turns of their own, and wait for the large record before theirs; from the checks of the hooks on, everything
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
    const leave = prepared.disclosure.length < minLarge ? undefined : await this.#lane.enter(action.tenant);
    let durable: DurableDecision;
    try {
      durable = await this.#writeDecision(chain, action, evaluation, prepared, step, hooks);
    } finally {
      leave?.();
    }
    // All who share a batch go on in the same turn.
    if (hasTurns) await pause(action);
    return durable;
  }

  async #writeDecision(
    chain: EvidenceChain,
    action: ActionEnvelope,
    evaluation: Evaluation,
    { commitments, disclosure }: PreparedFields,
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
    const durable = writer.appendAction(chain, placed, operations, disclosure);
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
    const { chains, hider, pause } = this.#parts;
    if (judged !== undefined && judged.actionId !== action.id) throw otherAction();
    const chain = chains.peek(action.tenant) ?? (await chains.open(action.tenant));
    const evaluation = judged && recordEvaluation(judged);
    // A policy that failed may be the one that would have redacted: nothing is kept of an output that it saw.
    const isKept = evaluation === undefined || evaluation.errors.length === 0;
    const hasTurns = outcome.status !== "unknown" && isLarge(outcome.output);
    let hidden: HiddenValue | undefined;
    let disclosure: PrivateEntry["text"] | undefined;
    try {
      if (hasTurns) {
        const turns = turnsOf(() => pause(action));
        await turns.next();
        hidden = await hider.hideInTurns(action.tool, outcome.output, turns, isKept);
        await turns.next();
        disclosure = await sharedJsonInTurns({ output: hidden.fields }, turns);
        await turns.next();
      } else if (outcome.status !== "unknown") {
        hidden = hider.hide(action.tool, outcome.output, isKept);
        disclosure = JSON.stringify({ output: hidden.fields });
      }
    } catch (error) {
      this.#pending.delete(openKey(action.tenant, action.id));
      throw error;
    }
    const { length = 0 } = disclosure ?? "";
    if (length >= minLarge) this.#parts.stored(action, length);
    const leave = length < minLarge ? undefined : await this.#lane.enter(action.tenant);
    try {
      const fields = { digest: hidden?.digest, disclosure };
      await this.#writeOutcome(chain, action, outcome, evaluation, fields, commitHook);
    } finally {
      leave?.();
    }
    // All who share a batch go on in the same turn.
    if (hasTurns) await pause(action);
  }

  async #writeOutcome(
    chain: EvidenceChain,
    action: ActionEnvelope,
    outcome: Outcome,
    evaluation: RecordedEvaluation | undefined,
    {
      digest,
      disclosure,
    }: { readonly digest: string | undefined; readonly disclosure: PrivateEntry["text"] | undefined },
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
    await writer.appendAction(chain, placed, operations, disclosure);
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
      disclosure: JSON.stringify({ arguments: hidden.fields, facts: fields?.fields }),
    };
  }

  /** The same with a pause before, between and after the steps. */
  async #prepareInTurns(
    { wrapping }: EvidenceChain,
    action: ActionEnvelope,
    facts: ActionFacts | undefined,
  ): Promise<PreparedFields> {
    const { hider, pause } = this.#parts;
    const turns = turnsOf(() => pause(action));
    await turns.next();
    const committed = wrapping.commitFingerprint(await fingerprintInTurns(action, turns));
    await turns.next();
    const hidden = await hider.hideInTurns(action.tool, action.arguments, turns);
    await turns.next();
    const fields = facts && (await hider.hideFactsInTurns(action, facts, turns));
    if (fields !== undefined) await turns.next();
    const kept = { arguments: hidden.fields, ...(fields && { facts: fields.fields }) };
    const disclosure = await sharedJsonInTurns(kept, turns);
    await turns.next();
    return {
      commitments: {
        fingerprint: committed,
        argumentsDigest: hidden.digest,
        facts: fields && { digest: fields.digest, effect: facts.effect },
      },
      disclosure,
    };
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
