import type { FormerApproval } from "../approval/former-approval.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Waiting } from "../pipeline/gate.ts";

/** What a held call is told of its approval, in words. */
export function waitingText(waiting: Waiting): string {
  if (waiting.kind === "full") return "The review queue is full, so nobody was asked: try again later.";
  const { id, state, comment, expires_at: until, required, endorsements } = waiting.approval;
  if (waiting.kind === "denied") {
    const said = comment === undefined ? "" : `: "${comment}"`;
    return `A reviewer denied approval ${id}${said}. Do not repeat this call.`;
  }
  if (state === "approved") return `Approval ${id} is given: repeat exactly the same call before ${until}.`;
  if (state !== "pending") return `${formerText(waiting.approval)} Repeat the call to have it reviewed anew.`;
  const missing = required - endorsements.length;
  const who = missing === 1 ? "Ask an operator to approve it" : `Ask ${missing} operators to approve it`;
  const former = waiting.former === undefined ? "" : `${formerText(waiting.former)} `;
  return `${former}Approval ${id} is pending until ${until}. ${who}, then repeat exactly the same call.`;
}

/** The same for machines. */
export function waitingData(waiting: Waiting): JsonObject {
  if (waiting.kind === "full") return { approval: null };
  const { id, state, expires_at: until, required, endorsements } = waiting.approval;
  const approval = { id, state, expires_at: until, required, endorsed: endorsements.length };
  if (waiting.kind === "denied" || waiting.former === undefined) return { approval };
  const { former } = waiting;
  return { approval, former_approval: { id: former.id, state: former.state, reason: former.reason ?? null } };
}

function formerText({ id, state, reason }: Pick<FormerApproval, "id" | "state" | "reason">): string {
  if (state === "consumed") return `Approval ${id} was good for one use and is used up.`;
  return `Approval ${id} holds no more (${reason ?? state}).`;
}
