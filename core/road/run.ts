import type { AuthorizedAction } from "../action/authorized-action.ts";
import type { CancelSignal } from "../action/cancellation.ts";
import type { CommitHook } from "../action/commit-hook.ts";
import {
  type ActionContext,
  type ActionEnvelope,
  type Outcome,
  type Protocol,
  withOutput,
} from "../action/envelope.ts";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Evaluation } from "../action/evaluation.ts";
import { deepFreeze, type Json } from "../action/json.ts";
import type { DefinitionReader, Participant, Participation, PendingDecision } from "../action/participant.ts";
import type { PolicyRef } from "../action/policy.ts";
import { anonymousKeyId } from "../action/principal.ts";
import { redactOutput } from "../action/redaction.ts";
import type { Subscriber } from "../action/subscriber.ts";
import { noSpan, type Span } from "../action/trace.ts";
import { authorize, type DecisionLog, type GateResult, type ReviewState } from "./authorize.ts";
import type { Answer, Dispatch, Stopped } from "./dispatch.ts";

/** Evaluates actions against every policy in force. */
export interface Evaluator {
  evaluate(action: ActionEnvelope, cancel?: CancelSignal): Evaluation | Promise<Evaluation>;
  /** Returns true where a policy may judge such an answer by its text. */
  readsOutput(protocol: Protocol): boolean;
}

/** Makes decisions durable before dispatch, and outcomes before the response. */
export interface EvidenceLog extends DecisionLog {
  /** Resolves once the outcome is on disk, together with the writes of `hook`. */
  recordOutcome(
    action: ActionEnvelope,
    outcome: Outcome,
    judged?: Evaluation,
    hook?: Pick<CommitHook, "operations">,
  ): Promise<void>;
}

/** Finds what actions do. */
export interface ActionDescriber {
  /** Returns the action with its facts. Neither throws nor rejects. */
  describe(action: ActionEnvelope): ActionEnvelope | Promise<ActionEnvelope>;
}

/** Everything that actions pass through, in order. */
export interface Road {
  readonly facts: ActionDescriber;
  readonly participants: readonly Participant[];
  readonly policies: Evaluator;
  readonly log: EvidenceLog;
  readonly subscribers: readonly Subscriber[];
  readonly newId: () => string;
}

/**
 * The end of an action. `refused`: not dispatched; `review` is the state of its review. `withheld`: dispatched, and the
 * answer may not be returned. `approvalId` names the approval that was used up for it.
 */
export type RunResult<Reply> =
  | { readonly kind: "answered"; readonly reply: Reply; readonly approvalId: string | undefined }
  | { readonly kind: "refused"; readonly evaluation: Evaluation; readonly review: ReviewState | null }
  | { readonly kind: "withheld"; readonly evaluation: Evaluation; readonly approvalId: string | undefined };

/** The caller's part of one run. */
interface RunOptions {
  readonly span?: Span;
  readonly readDefinition?: DefinitionReader | undefined;
  /** Aborts when the caller no longer wants an answer. */
  readonly cancel?: CancelSignal;
}

/**
 * Takes one action from attempt to answer: find its facts, let each participant look, evaluate, authorize and commit, dispatch, judge the
 * output, commit, reply. The decision is durable before `dispatch` is called, the outcome before this resolves.
 *
 * An approval is used only where `readDefinition` finds the tool as it was judged, else this rejects with DEFINITION_CHANGED.
 * Rejects with the error of the dispatch after recording the outcome as unknown, and with EVIDENCE_UNAVAILABLE when a
 * record cannot be made durable. An approval is used up whatever the dispatch does.
 */
export async function runAction<Reply>(
  road: Road,
  attempted: ActionEnvelope,
  dispatch: Dispatch<Reply>,
  options: RunOptions = {},
): Promise<RunResult<Reply>> {
  const { span = noSpan, cancel } = options;
  const found = road.facts.describe(attempted);
  const { evaluation, gate } = await decide(road, found instanceof Promise ? await found : found, span, options);
  const { permission } = gate;
  if (permission === null) return refuse(attempted, evaluation, gate.review);

  const { action, approvalId } = permission;
  try {
    // INVARIANT: the taints of an action are durable before it is dispatched.
    const answer = await dispatchOnce(road, permission, dispatch, span);
    if ("stopped" in answer) {
      await commitOutcome(road, action, { status: "unknown", reason: stoppedReason }, answer.stopped, span);
      return { kind: "withheld", evaluation: answer.stopped, approvalId };
    }
    const judged = await judgeOutput(road, action, answer.output, span, cancel);
    // INVARIANT: from here on nobody sees the answer unredacted.
    const isRedacted = judged.redactions.length > 0;
    const output = isRedacted ? redactOutput(answer.output, judged.redactions) : answer.output;
    await commitOutcome(road, action, { status: answer.status, output }, judged, span);
    if (isRedacted) publishRedactions(road, action.protocol, judged);
    if (judged.decision !== "allow") return { kind: "withheld", evaluation: judged, approvalId };
    return { kind: "answered", reply: await answer.makeReply(output, judged.redactions), approvalId };
  } catch (cause) {
    const error = GatewayError.from(cause);
    throw approvalId === undefined ? error : withUsedApproval(error, approvalId);
  }
}

/** Evaluates an action as policy would see it, and nothing else: no evidence, no dispatch. */
export async function evaluateAction(
  road: Road,
  attempted: ActionEnvelope,
): Promise<{ readonly action: ActionEnvelope; readonly evaluation: Evaluation }> {
  const found = road.facts.describe(attempted);
  const described = found instanceof Promise ? await found : found;
  const contexts = road.participants.map((each) => each.describe?.(described));
  const action: ActionEnvelope = deepFreeze(Object.assign({}, described, ...contexts));
  return { action, evaluation: await evaluateOrBlock(road, action) };
}

/**
 * Judges what an upstream sends beside its answer as that action's output, and returns what policy leaves of it; null
 * unless it is allowed. Leaves no evidence: the caller records whether it was relayed.
 */
export async function judgeNotification(road: Road, action: ActionEnvelope, message: Json): Promise<Json | null> {
  const judged = await judgeOutput(road, action, message, noSpan);
  if (judged.decision !== "allow") return null;
  if (judged.redactions.length > 0) publishRedactions(road, action.protocol, judged);
  return redactOutput(message, judged.redactions);
}

interface Decided {
  readonly evaluation: Evaluation;
  readonly gate: GateResult;
}

/**
 * Decides about an action. One that is overtaken by a kill or a spent ticket is judged again, so that the record shows what
 * then holds; neither can be undone meanwhile, so each overtakes at most once.
 */
async function decide(road: Road, attempted: ActionEnvelope, span: Span, options: RunOptions): Promise<Decided> {
  const met = new Set<ErrorCode>();
  for (;;) {
    try {
      return await decideOnce(road, attempted, span, options);
    } catch (cause) {
      const { code } = GatewayError.from(cause);
      if (!overtaking.has(code) || met.has(code)) throw cause;
      met.add(code);
    }
  }
}

const overtaking: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["SESSION_KILLED", "TICKET_STATE"]);

async function decideOnce(road: Road, attempted: ActionEnvelope, span: Span, options: RunOptions): Promise<Decided> {
  const { readDefinition, cancel } = options;
  const participations: Participation[] = [];
  const context: ActionContext = {};
  let pending: PendingDecision | undefined;
  try {
    for (const each of road.participants) {
      const participation = each.participation ?? each.begin?.(attempted);
      if (participation === undefined) continue;
      participations.push(participation);
      Object.assign(context, participation.context);
    }
    const action = deepFreeze({ ...attempted, ...context });
    span.setAttributes({ action });
    const evaluation = await evaluateOrBlock(road, action, span, cancel);
    const judged: PendingDecision = { action, evaluation, readDefinition, review: null, isCommitted: false };
    pending = judged;
    const gate = await span.begin("record_decision").until(authorize(road.log, participations, judged));
    for (const each of road.subscribers) each.recorded?.(action, evaluation, gate.permission !== null);
    return { evaluation, gate };
  } finally {
    for (const each of participations.toReversed()) each.finish?.();
    if (pending !== undefined && pending.review !== null) {
      for (const each of participations) each.settleReview?.(pending.review, pending.isCommitted);
    }
  }
}

/** Returns the evaluation of the chain, or one that blocks where the chain throws: the wall behind each policy's own. */
export async function evaluateOrBlock(
  road: Pick<Road, "policies" | "subscribers" | "newId">,
  action: ActionEnvelope,
  span: Span = noSpan,
  cancel?: CancelSignal,
): Promise<Evaluation> {
  const step = span.begin(action.phase === "output" ? "judge_output" : "evaluate");
  let evaluation: Evaluation;
  try {
    const judged = road.policies.evaluate(action, cancel);
    evaluation = judged instanceof Promise ? await judged : judged;
  } catch (cause) {
    evaluation = blockFailed(action, road.newId(), cause);
  }
  step.setAttributes({ evaluation });
  step.end();
  span.setAttributes({ evaluation });
  for (const each of road.subscribers) each.evaluated?.(action, evaluation, span.context);
  return evaluation;
}

/** Records the taints of an action, then sends it. A streamed answer is judged event by event inside this step. */
async function dispatchOnce<Reply>(
  road: Road,
  permission: AuthorizedAction,
  dispatch: Dispatch<Reply>,
  span: Span,
): Promise<Answer<Reply> | Stopped> {
  const { action, evaluation } = permission;
  let step = noSpan;
  try {
    await recordTaints(road, action, evaluation);
    step = span.begin("dispatch");
    const answer = await dispatch(permission, step);
    const end = "flow" in answer ? await answer.flow((output) => judgeOutput(road, action, output, span)) : answer;
    if ("status" in end && end.status === "error") step.setAttributes({ error: "tool_error" });
    step.end();
    return end;
  } catch (cause) {
    const error = GatewayError.from(cause);
    step.setAttributes({ error: error.code });
    step.end();
    await commitOutcome(road, action, { status: "unknown", reason: error.code }, undefined, span);
    throw error;
  }
}

/** INVARIANT: the taints of an answer are durable before anyone sees any of it. */
async function judgeOutput(
  road: Road,
  action: ActionEnvelope,
  output: Json,
  span: Span,
  cancel?: CancelSignal,
): Promise<Evaluation> {
  const answered =
    action.protocol === "model" ? await describeAnswer(road, action, output) : withOutput(action, output);
  const judged = await evaluateOrBlock(road, answered, span, cancel);
  await recordTaints(road, answered, judged);
  return judged;
}

/** The answer of a model with the facts of the tool calls that it asks for. */
async function describeAnswer(road: Road, action: ActionEnvelope, output: Json): Promise<ActionEnvelope> {
  return deepFreeze(await road.facts.describe(withOutput(action, output)));
}

async function recordTaints(road: Road, action: ActionEnvelope, evaluation: Evaluation): Promise<void> {
  for (const each of road.participants) {
    const recorded = each.recordTaints?.(action, evaluation);
    if (recorded !== undefined) await recorded;
  }
}

async function commitOutcome(
  road: Road,
  action: ActionEnvelope,
  outcome: Outcome,
  judged: Evaluation | undefined,
  span: Span,
): Promise<void> {
  const hooks: CommitHook[] = [];
  try {
    if (judged !== undefined) {
      for (const each of road.participants) {
        const hook = each.applyOutputVerdict?.(action, judged);
        if (hook !== undefined) hooks.push(hook);
      }
    }
    const hook = hooks.length > 1 ? joinHooks(hooks) : hooks[0];
    await span.begin("record_outcome").until(road.log.recordOutcome(action, outcome, judged, hook));
    // COMMIT POINT: the outcome is durable; the response may be given.
  } finally {
    for (const hook of hooks) hook.end();
  }
  for (const each of road.subscribers) {
    each.finished?.(action, outcome);
    if (judged !== undefined) each.recorded?.(action, judged, true);
  }
}

function joinHooks(hooks: readonly CommitHook[]): Pick<CommitHook, "operations"> {
  return { operations: () => hooks.flatMap((hook) => hook.operations()) };
}

function publishRedactions(road: Road, protocol: Protocol, { redactions }: Evaluation): void {
  for (const each of road.subscribers) each.redacted?.(protocol, redactions.length);
}

/** An answer that policy stopped half-way: the rest of it is not known. */
const stoppedReason = "the answer was stopped by policy";

/** A reviewer decides about a known caller; an anonymous one cannot be asked to repeat its call. */
function refuse(
  { principal }: ActionEnvelope,
  evaluation: Evaluation,
  review: ReviewState | null,
): Extract<RunResult<never>, { kind: "refused" }> {
  if (evaluation.decision === "review" && principal.keyId === anonymousKeyId) {
    throw new GatewayError(
      "KEY_MISSING",
      "this action is held for review, which needs a known caller: send `X-API-Key`",
    );
  }
  return { kind: "refused", evaluation, review };
}

/** The same error, with the note that the approval is used up. */
export function withUsedApproval(error: GatewayError, approvalId: string): GatewayError {
  const lost = `approval \`${approvalId}\` is used up, a new one is needed`;
  const detail = error.row.expose && error.detail !== undefined ? `${error.detail}; ${lost}` : lost;
  const data = { ...error.data, approval: { id: approvalId, state: "consumed" } };
  return new GatewayError(error.code, detail, { cause: error, data });
}

const chainRef: PolicyRef = { kind: "external", name: "chain", version: "1", digest: "", signer: null };

function blockFailed(action: ActionEnvelope, id: string, cause: unknown): Evaluation {
  const error = `policy_error: ${cause instanceof Error ? cause.message : String(cause)}`;
  return {
    id,
    actionId: action.id,
    phase: action.phase,
    decision: "block",
    verdicts: [{ policy: chainRef, decision: "block", findings: [], risk: 100, error, durationUs: 0 }],
    shadow: [],
    determining: [],
    byDefault: false,
    approvals: 1,
    risk: 100,
    redactions: [],
    durationUs: 0,
  };
}
