import { approvalScopes, approvalStates, expiryReasons } from "../../kernel/approval.ts";
import { capabilities } from "../../kernel/capability.ts";
import { protocols } from "../../kernel/envelope.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { roles } from "../../kernel/role.ts";
import { anyObject, anyText, count, flag, list, nullable, object, oneOf, points, ref, texts, time } from "./shape.ts";

const endorsement = object(
  { reviewer: anyText, key_id: anyText, at: time, scope: oneOf(approvalScopes), comment: anyText },
  ["comment"],
);

const breakGlass = object(
  { by: anyText, reason: anyText, at: time, post_mortem: object({ by: anyText, text: anyText, at: time }) },
  ["post_mortem"],
);

const action = object({
  id: anyText,
  capability: oneOf(capabilities),
  protocol: oneOf(protocols),
  target: anyText,
  task: nullable(anyText),
  tool: anyText,
});

const approval = object(
  {
    id: anyText,
    tenant: anyText,
    state: oneOf(approvalStates),
    scope: oneOf(approvalScopes),
    fingerprint: anyText,
    task_fingerprint: anyText,
    principal: object({ id: anyText, key_id: anyText, role: oneOf(roles) }),
    session: object({ id: anyText, transport: oneOf(["http", "sse"]) }),
    action,
    evaluation: object({ id: anyText, by_default: flag, risk: points, rules: texts }),
    tainted: texts,
    bound: object({ tool_definition: nullable(anyText), policies: texts }),
    required: count,
    endorsements: list(endorsement),
    held_seq: count,
    requested_at: time,
    expires_at: time,
    reviewed_at: time,
    reviewer: anyText,
    comment: anyText,
    consumed_at: time,
    consumed_seq: count,
    reason: oneOf(expiryReasons),
    break_glass: breakGlass,
  },
  ["tainted", "reviewed_at", "reviewer", "comment", "consumed_at", "consumed_seq", "reason", "break_glass"],
  { description: "A single-use permission. It holds no argument of the action." },
);

const change = object({ pointer: anyText, kind: oneOf(["added", "removed", "changed"]), before: {}, after: {} }, [
  "before",
  "after",
]);

const recentAction = object({
  time,
  id: anyText,
  capability: anyText,
  tool: anyText,
  target: anyText,
  decision: nullable(ref("Decision")),
  rules: texts,
  approval: nullable(object({ id: anyText, state: anyText })),
  effect: ref("Effect"),
});

const held = object({
  action: { ...anyObject, description: "the action whole, as policy saw it" },
  rules: list(object({ rule: anyText, message: anyText, severity: anyText })),
});

const approvalView = object({
  approval: ref("Approval"),
  held: nullable(held),
  withheld: nullable(
    oneOf(["role", "over", "incomplete"], {
      description:
        "why the action is not shown: the caller may not review, nothing is left to decide, or it is not kept whole",
    }),
  ),
  changes: nullable(object({ since: anyText, items: list(change), omitted: count })),
  recent: list(recentAction),
  session: nullable(ref("EvidenceSession")),
  risk: points,
});

/** What the answers about approvals are made of. */
export const approvalSchemas: Readonly<Record<string, JsonObject>> = { Approval: approval, ApprovalView: approvalView };
