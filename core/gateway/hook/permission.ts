import { AuthorizedAction } from "../../action/authorized-action.ts";
import type { DirectProtocol } from "../../action/envelope.ts";
import type { Evaluation } from "../../action/evaluation.ts";
import type { FairShare } from "../../http/fair-share.ts";
import type { Refusal } from "../../http/refusal.ts";
import type { ActionFactory, Actor } from "../../road/action-factory.ts";
import type { Dispatch } from "../../road/dispatch.ts";
import { type Road, runAction } from "../../road/run.ts";
import { presentTicket, type TicketReader } from "../../ticket/ticket-verifier.ts";
import type { ReviewWaits } from "../review-wait.ts";
import type { DirectAction } from "./direct-action.ts";
import type { DirectCapabilities } from "./direct-capability.ts";

export interface PermissionParts {
  readonly road: Road;
  readonly actions: Readonly<Record<DirectProtocol, ActionFactory>>;
  readonly capabilities: DirectCapabilities;
  readonly tickets: TicketReader;
  readonly waits: ReviewWaits;
  /** The longest time that a held action waits for its review, whatever its asker wants. */
  readonly maxWaitMs: number;
  readonly fairShare: FairShare;
}

/** An agent's question whether it may take an action. */
interface PermissionRequest {
  readonly actor: Actor;
  readonly action: DirectAction;
  /** The token of its ticket; undefined where it has none. */
  readonly ticket: string | undefined;
  /** Aborts when the asker no longer wants an answer, with the error to answer with. */
  readonly signal: AbortSignal;
}

/** The answer: the agent may take the action once, or may not. */
export type PermissionResult =
  | { readonly kind: "granted"; readonly evaluation: Evaluation; readonly approvalId: string | undefined }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/**
 * Takes the action of an agent that asks first along the road. What is dispatched is the permission alone: its decision is
 * durable before, and the outcome says that it was given. What the agent then does is not seen.
 *
 * A held action waits for its review where its asker wants that and, once approved, is judged anew from the beginning. One
 * that is held again does not wait again. Rejects with the GatewayError to answer with.
 */
export async function requestPermission(parts: PermissionParts, asked: PermissionRequest): Promise<PermissionResult> {
  const { actor, action, signal } = asked;
  const capability = parts.capabilities.of(action);
  const { protocol, tool, target, arguments: args } = action;
  const maxMs = Math.min(action.waitMs, parts.maxWaitMs);
  for (let hasWaited = maxMs === 0; ; hasWaited = true) {
    const ticket = presentTicket(parts.tickets, actor.principal, asked.ticket, undefined);
    const attempt = { tool, target, capability, arguments: args, ticket };
    const attempted = parts.actions[protocol].make(actor, attempt);
    const result = await runAction(parts.road, attempted, grantPermission, { cancel: signal });
    if (result.kind === "answered") return result.reply;
    const mayWait = !hasWaited && result.kind === "refused" && result.review?.kind === "held";
    if (!mayWait || !parts.waits.hasRoom(actor.principal)) return { kind: "refused", refusal: result };
    const wanted = { principal: actor.principal, maxMs, ends: [signal] };
    const refusal = await parts.waits.wait(result, result.review, wanted);
    if (refusal !== "approved") return { kind: "refused", refusal };
    parts.fairShare.mainThread.resume(actor.principal);
  }
}

/** Spends the permission by handing it to the asker. */
const grantPermission: Dispatch<PermissionResult> = async (permission) => {
  AuthorizedAction.spend(permission);
  const { evaluation, approvalId } = permission;
  return {
    status: "success",
    output: { permitted: true },
    makeReply: () => ({ kind: "granted", evaluation, approvalId }),
  };
};
