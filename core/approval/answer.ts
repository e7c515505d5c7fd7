import type { Approval, ApprovalScope, Endorsement } from "../kernel/approval.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Operation } from "../kernel/operation.ts";
import type { Principal } from "../kernel/principal.ts";
import type { ApprovalBook } from "./book.ts";
import { breakGlassKey } from "./key-space.ts";

export interface Yes {
  readonly scope: ApprovalScope;
  readonly comment?: string;
  /** Why this cannot wait for the reviewers it needs. */
  readonly breakGlass?: string;
}

/** What an answer makes of an approval, and what evidence tells of it. */
export interface Answer {
  readonly next: Approval;
  readonly detail: JsonObject;
  readonly operations?: readonly Operation[];
}

/** What one more yes makes of an approval: enough of them, or an emergency, approve it. */
export function endorse(
  book: ApprovalBook,
  approval: Approval,
  reviewer: Principal,
  { scope, comment, breakGlass }: Yes,
): Answer {
  const at = book.now();
  const said = comment === undefined ? {} : { comment };
  const yes: Endorsement = { reviewer: reviewer.id, key_id: reviewer.keyId, at, scope, ...said };
  const endorsements = [...approval.endorsements, yes];
  const told = { reviewer: reviewer.id, scope, ...said };
  if (endorsements.length < approval.required && breakGlass === undefined) {
    return { next: { ...approval, endorsements }, detail: { event: "endorsed", ...told } };
  }
  // The narrowest that any of them said: nobody's yes is stretched.
  const agreed: ApprovalScope = endorsements.every((each) => each.scope === "task") ? "task" : "exact";
  const next: Approval = {
    ...approval,
    state: "approved",
    scope: agreed,
    endorsements,
    reviewed_at: at,
    reviewer: reviewer.id,
    ...said,
    expires_at: book.after(book.parts.limits.useMs),
    ...(breakGlass === undefined ? {} : { break_glass: { by: reviewer.id, reason: breakGlass, at } }),
  };
  const detail: JsonObject = {
    ...told,
    event: "approved",
    scope: agreed,
    ...(agreed === "task" ? { action: taskOf(approval) } : {}),
    ...(breakGlass === undefined ? {} : { break_glass: { reason: breakGlass } }),
  };
  if (breakGlass === undefined) return { next, detail };
  return { next, detail, operations: [{ type: "put", key: breakGlassKey(approval.tenant, approval.id), value: "" }] };
}

function taskOf({ action }: Approval): JsonObject {
  const { capability, protocol, target, task, tool } = action;
  return { capability, protocol, target, task, tool };
}
