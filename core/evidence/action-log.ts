import { type ApprovalStep, isConsuming } from "../action/approval.ts";
import type { DurableDecision } from "../action/authorized-action.ts";
import type { BatchOperation, CommitHook, DecisionCommitHook } from "../action/commit-hook.ts";
import type { Evaluation } from "../action/decision.ts";
import type { ActionEnvelope, Outcome } from "../action/envelope.ts";
import { fingerprint } from "../action/fingerprint.ts";
import type { Random } from "../action/id.ts";
import type { Json } from "../action/json.ts";
import { releaseHeld, sealHeld } from "./approval-evidence.ts";
import type { Chain, ChainTable } from "./chain/chain-table.ts";
import { openKey } from "./chain/key-space.ts";
import { decisionBody, outcomeBody } from "./chain/record-body.ts";
import type { OpenDecisions } from "./chain/recovery.ts";
import type { Writer } from "./chain/writer.ts";
import type { FieldHider, HiddenValue } from "./private/private-field.ts";

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
    if (dispatched) await open.owe(action.tenant, action.id, bound, durable);
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
    const bound = open.take(action.tenant, action.id);
    admit("outcome");
    const hidden = outcome.status === "unknown" ? undefined : hideOutput(hider, action, outcome.output, judged);
    const body = outcomeBody(this.#tell(action), outcome, judged, bound, hidden?.digest);
    const disclosure = hidden === undefined ? undefined : { output: hidden.fields };
    const key = openKey(action.tenant, action.id);
    const operations = (): BatchOperation[] => [{ type: "del", key }, ...(commitHook?.operations() ?? [])];
    await writer.appendAction(chain, body, disclosure, operations).durable;
  }

  /** What happens to an approval with the decision `seq`. */
  #take({ tenant, id, wrapping }: Chain, seq: number, { holds, releases, operations }: ApprovalStep): BatchOperation[] {
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
