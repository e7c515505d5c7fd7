import type { AuthorizedAction } from "../action/authorized-action.ts";
import type { CommitHook } from "../action/commit-hook.ts";
import type { Decision, Evaluation } from "../action/decision.ts";
import { type ActionEnvelope, type Outcome, type Phase, type Protocol, withOutput } from "../action/envelope.ts";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { Json, JsonObject } from "../action/json.ts";
import type { PolicyRef, Redaction } from "../action/policy.ts";
import { anonymousKeyId } from "../action/principal.ts";
import { redactOutput } from "../action/redaction.ts";
import type { TraceContext } from "../action/trace.ts";
import { type DecisionLog, type Gated, type GateParts, passGate, type Waiting } from "./authorize.ts";
import { decisionNotice, hasRisk, riskNotice } from "./live-decision.ts";
import { JoinedVisit, type SessionWatch, type TicketDesk } from "./participant.ts";

/** Where outcomes become durable before anything is answered. */
interface OutcomeLog extends DecisionLog {
  /** What `commitHook` brings becomes durable with it. */
  recordOutcome(
    action: ActionEnvelope,
    outcome: Outcome,
    judged?: Evaluation,
    commitHook?: Pick<CommitHook, "operations">,
  ): Promise<void>;
}

interface RoadObserver {
  decided(protocol: Protocol, phase: Phase, decision: Decision, durationUs: number, trace?: TraceContext): void;
  settled(protocol: Protocol, status: Outcome["status"]): void;
  /** Hears of each answer that was redacted, once that is on record, and of each redacted notification. */
  redacted(protocol: Protocol, places: number): void;
}

/** Where people watch what is decided. */
interface LiveFeed {
  decide(tenant: string, decision: Decision, durationUs: number, data: JsonObject): void;
  publish(tenant: string, channel: "risk", make: () => JsonObject): void;
}

/** Hears of each evaluation that is on record, with the action as policy saw it, but for an answer. */
export interface EvaluationListener {
  note(action: ActionEnvelope, evaluation: Evaluation): void;
}

export interface RoadParts extends GateParts {
  readonly sessions: SessionWatch;
  readonly tickets: TicketDesk;
  readonly chain: Evaluator;
  readonly log: OutcomeLog;
  readonly observer: RoadObserver;
  readonly live: LiveFeed;
  readonly listener: EvaluationListener;
  readonly newId: () => string;
}

/**
 * How the road ended. `refused`: not dispatched; `review` says what became of an action that was held. `withheld`:
 * dispatched, and the answer may not be returned. `approvalId` names the approval that was used up for it.
 */
export type Passage<Reply> =
  | { readonly kind: "answered"; readonly reply: Reply; readonly approvalId: string | undefined }
  | { readonly kind: "refused"; readonly evaluation: Evaluation; readonly review: Waiting | null }
  | { readonly kind: "withheld"; readonly evaluation: Evaluation; readonly approvalId: string | undefined };

/** The one road every action travels: evaluate, record, dispatch, judge the answer, record, answer. */
export class Road {
  readonly #parts: RoadParts;

  constructor(parts: RoadParts) {
    this.#parts = parts;
  }

  /** The same road over changed parts. */
  over(change: (parts: RoadParts) => RoadParts): Road {
    return new Road(change(this.#parts));
  }

  /** What policy says of an action, and nothing else: no evidence, no dispatch. */
  async evaluate(action: ActionEnvelope): Promise<Evaluation> {
    return (await this.examine(action)).evaluation;
  }

  /** The same, with the action as policy saw it. */
  async examine(action: ActionEnvelope): Promise<{ readonly action: ActionEnvelope; readonly evaluation: Evaluation }> {
    const { sessions, tickets } = this.#parts;
    const seen = tickets.view(sessions.view(action));
    return { action: seen, evaluation: await this.#evaluate(seen) };
  }

  /**
   * What policy leaves of something that an upstream says beside its answer to an action: judged as that action's
   * output, null unless it is allowed. No evidence: whoever passes it on, or does not, says so.
   */
  async judgeAside(action: ActionEnvelope, said: Json): Promise<Json | null> {
    const { decision, redactions } = await this.#judge(action, said);
    if (decision !== "allow") return null;
    const left = redactOutput(said, redactions);
    if (redactions.length > 0) this.#parts.observer.redacted(action.protocol, redactions.length);
    return left;
  }

  /** Whether policy may say something of such an answer because of its text. */
  readsOutput(protocol: Protocol): boolean {
    return this.#parts.chain.readsOutput(protocol);
  }

  /**
   * Takes one action from attempt to answer. The decision is durable before `dispatch` is called, the outcome before
   * this resolves. Rejects with the dispatch's own error after recording the outcome as unknown, and with
   * EVIDENCE_UNAVAILABLE when a record cannot be made durable. An approval is used up whatever the dispatch does.
   */
  async travel<Reply>(action: ActionEnvelope, dispatch: Dispatch<Reply>): Promise<Passage<Reply>> {
    const { evaluation, gated } = await this.#decide(action);
    const { permission } = gated;
    if (permission === null) return refuse(action, evaluation, gated.review);
    const { approvalId } = permission;
    try {
      return await this.#run(permission, evaluation, dispatch);
    } catch (cause) {
      const error = GatewayError.from(cause);
      throw approvalId === undefined ? error : usedUp(error, approvalId);
    }
  }

  async #run<Reply>(
    permission: AuthorizedAction,
    evaluation: Evaluation,
    dispatch: Dispatch<Reply>,
  ): Promise<Passage<Reply>> {
    const { action, approvalId } = permission;
    const answer = await this.#dispatch(permission, evaluation, dispatch);
    if ("stopped" in answer) {
      await this.#settle(action, { status: "unknown", reason: stoppedReason }, answer.stopped);
      return { kind: "withheld", evaluation: answer.stopped, approvalId };
    }
    const judged = await this.#judge(action, answer.output);
    // INVARIANT: from here on nobody sees the answer as it came.
    const output = redactOutput(answer.output, judged.redactions);
    await this.#settle(action, { status: answer.status, output }, judged);
    if (judged.redactions.length > 0) this.#parts.observer.redacted(action.protocol, judged.redactions.length);
    if (judged.decision !== "allow") return { kind: "withheld", evaluation: judged, approvalId };
    return { kind: "answered", reply: await answer.makeReply(output, judged.redactions), approvalId };
  }

  async #evaluate(action: ActionEnvelope): Promise<Evaluation> {
    const evaluation = await evaluateOrBlock(this.#parts.chain, action, this.#parts.newId);
    this.#parts.observer.decided(action.protocol, action.phase, evaluation.decision, evaluation.durationUs);
    return evaluation;
  }

  /** INVARIANT: what an answer taints its session with is in force, and durable, before anyone sees of the answer. */
  async #judge(action: ActionEnvelope, output: Json): Promise<Evaluation> {
    const judged = await this.#evaluate(withOutput(action, output));
    await this.#parts.sessions.learn(action, judged);
    return judged;
  }

  /**
   * An action whose session is stopped, or whose ticket is spent, while it is judged is judged again, so that what then
   * holds is on record. Neither is undone meanwhile, so each can happen once.
   */
  async #decide(action: ActionEnvelope): Promise<Decided> {
    const met = new Set<string>();
    for (;;) {
      try {
        return await this.#decideOnce(action);
      } catch (cause) {
        const { code } = GatewayError.from(cause);
        if (!overtaking.has(code) || met.has(code)) throw cause;
        met.add(code);
      }
    }
  }

  async #decideOnce(attempted: ActionEnvelope): Promise<Decided> {
    const visit = JoinedVisit.enter(attempted, this.#parts.sessions, this.#parts.tickets);
    try {
      const evaluation = await this.#evaluate(visit.action);
      const gated = await passGate(this.#parts, visit, evaluation);
      this.#tell(visit.action, evaluation, gated);
      this.#parts.listener.note(visit.action, evaluation);
      return { evaluation, gated };
    } finally {
      visit.leave();
    }
  }

  #tell(action: ActionEnvelope, evaluation: Evaluation, gated: Gated): void {
    const { live } = this.#parts;
    const { tenant } = action;
    live.decide(tenant, evaluation.decision, evaluation.durationUs, decisionNotice(action, evaluation, gated));
    if (hasRisk(action)) live.publish(tenant, "risk", () => riskNotice(action));
  }

  /** INVARIANT: what an action taints its session with is in force, and durable, before it is dispatched. */
  async #dispatch<Reply>(
    permission: AuthorizedAction,
    evaluation: Evaluation,
    dispatch: Dispatch<Reply>,
  ): Promise<Answer<Reply> | Stopped> {
    try {
      await this.#parts.sessions.learn(permission.action, evaluation);
      const answer = await dispatch(permission);
      return "flow" in answer ? await answer.flow((output) => this.#judge(permission.action, output)) : answer;
    } catch (cause) {
      const error = GatewayError.from(cause);
      await this.#settle(permission.action, { status: "unknown", reason: error.code });
      throw error;
    }
  }

  async #settle(action: ActionEnvelope, outcome: Outcome, judged?: Evaluation): Promise<void> {
    const { log, sessions, listener } = this.#parts;
    const commitHook = judged === undefined ? undefined : sessions.weigh(action, judged);
    try {
      await log.recordOutcome(action, outcome, judged, commitHook);
    } finally {
      commitHook?.end();
    }
    if (judged !== undefined) listener.note(action, judged);
    this.#parts.observer.settled(action.protocol, outcome.status);
  }
}

/** An answer that policy stopped half-way: what the upstream would have said is not known. */
const stoppedReason = "the answer was stopped by policy";

/** What a check says that was asked too late. */
const overtaking: ReadonlySet<string> = new Set<ErrorCode>(["SESSION_KILLED", "TICKET_STATE"]);

interface Decided {
  readonly evaluation: Evaluation;
  readonly gated: Gated;
}

/** The same error, and that the approval is gone with it. */
export function usedUp(error: GatewayError, approvalId: string): GatewayError {
  const lost = `approval \`${approvalId}\` is used up, a new one is needed`;
  const detail = error.row.expose && error.detail !== undefined ? `${error.detail}; ${lost}` : lost;
  const data = { ...error.data, approval: { id: approvalId, state: "consumed" } };
  return new GatewayError(error.code, detail, { cause: error, data });
}

/** A reviewer decides about a known caller; nobody can be asked about an unknown one. */
function refuse(
  action: ActionEnvelope,
  evaluation: Evaluation,
  review: Waiting | null,
): Extract<Passage<never>, { kind: "refused" }> {
  if (evaluation.decision === "review" && action.principal.keyId === anonymousKeyId) {
    throw new GatewayError(
      "KEY_MISSING",
      "this action is held for review, which needs a known caller: send `X-API-Key`",
    );
  }
  return { kind: "refused", evaluation, review };
}

/**
 * What an upstream answered, for policy to judge, and how a reply is made of what policy leaves of it: of that and
 * nothing else, so that what was redacted is in no reply.
 */
export interface Answer<Reply> {
  readonly status: "success" | "error";
  readonly output: Json;
  /** `redactions` are those that were applied to make this output. */
  readonly makeReply: (output: Json, redactions: readonly Redaction[]) => Reply | Promise<Reply>;
}

/** Sends one permitted action to where it belongs. Rejects when no answer can be vouched for. */
export type Dispatch<Reply> = (permission: AuthorizedAction) => Promise<Answer<Reply> | StreamedAnswer<Reply>>;

/** Asks policy about an answer, or a part of one. */
export type Judge = (output: Json) => Promise<Evaluation>;

/** An answer that policy stopped on its way. */
export interface Stopped {
  readonly stopped: Evaluation;
}

/** An answer that comes event by event. */
export interface StreamedAnswer<Reply> {
  /**
   * Lets go what policy has seen. Resolves with the answer once it is whole, its last events still held back, or with
   * the evaluation that stopped it. Rejects with what ended the stream early.
   */
  readonly flow: (judge: Judge) => Promise<Answer<Reply> | Stopped>;
}

/** The chain, as the road needs it. */
export interface Evaluator {
  evaluate(action: ActionEnvelope): Evaluation | Promise<Evaluation>;
  /** Whether the answer's text may change what is said of it. */
  readsOutput(protocol: Protocol): boolean;
}

const chainRef: PolicyRef = { kind: "external", name: "chain", version: "1", digest: "", signer: null };

/**
 * The chain's answer, or `block` where the chain itself throws.
 * The chain already turns each policy's failure into a block; this is the wall behind that one.
 */
export async function evaluateOrBlock(
  chain: Evaluator,
  action: ActionEnvelope,
  newId: () => string,
): Promise<Evaluation> {
  try {
    return await chain.evaluate(action);
  } catch (cause) {
    const error = `policy_error: ${cause instanceof Error ? cause.message : String(cause)}`;
    return {
      id: newId(),
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
}
