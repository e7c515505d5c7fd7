import { phases } from "../action/envelope.ts";
import type { JsonObject } from "../action/json.ts";
import { type ActivePolicy, modes, severities } from "../action/policy.ts";
import type { Operations } from "../operation/operation.ts";
import { paging } from "../operation/request.ts";
import {
  answers,
  anyText,
  closed,
  count,
  flag,
  list,
  nullable,
  object,
  oneOf,
  page,
  points,
  ref,
  texts,
  time,
} from "../operation/shape.ts";
import { describedActionSchema } from "../road/described-action.ts";

type PolicyRouteId =
  | "admin.policies"
  | "admin.plugins"
  | "admin.test_action"
  | "admin.simulate"
  | "admin.shadow_decisions";

const kind = oneOf(["pack", "plugin", "session", "external"]);

const finding = object(
  {
    rule: anyText,
    decision: ref("Decision"),
    message: anyText,
    severity: oneOf(severities),
    risk: points,
    mode: oneOf(modes),
    pointer: anyText,
    approvals: count,
    session_risk: points,
    taints: texts,
    ticket: anyText,
  },
  ["pointer", "approvals", "session_risk", "taints", "ticket"],
);

const redaction = object({ rule: anyText, pointer: anyText, start: count, end: count, replacement: anyText });

const verdict = object(
  {
    policy: ref("PolicyRef"),
    decision: oneOf(["allow", "review", "block", "abstain"]),
    risk: points,
    findings: list(finding),
    duration_us: count,
    error: anyText,
  },
  ["error"],
);

const reference = { kind, name: anyText, version: anyText, digest: anyText, signer: nullable(anyText) };
const standing = object({ items: list(ref("ActivePolicy")), next: { type: "null" } });

/** What the answers about policy are made of. */
export const policySchemas: Readonly<Record<string, JsonObject>> = {
  PolicyRef: object(reference),
  ActivePolicy: object({ ...reference, mode: oneOf(modes) }),
  Evaluation: object(
    {
      id: anyText,
      phase: oneOf(phases),
      decision: ref("Decision"),
      by_default: flag,
      rules: texts,
      risk: points,
      approvals: count,
      verdicts: list(verdict),
      shadow: list(verdict),
      redactions: list(redaction),
      duration_us: count,
      explanation: ref("Explanation"),
    },
    ["explanation"],
  ),
};

const shadowDecision = object({
  decision: oneOf(["review", "block"]),
  rule: anyText,
  policy: object({ kind, name: anyText }),
  count,
  last_time: time,
  last_decision: anyText,
});

const explain: JsonObject = { ...flag, description: "true or false: whether to say why as well" };
const explainedActionSchema: JsonObject = {
  ...describedActionSchema,
  properties: { ...(describedActionSchema.properties as JsonObject), explain },
};

const example: JsonObject = { tool: "read_file", target: "files", arguments: { path: "/etc/passwd" } };

/** What judges actions, and what it says of one. */
export const policyOperations: Operations<PolicyRouteId> = {
  "admin.policies": {
    name: "listPolicies",
    subject: "policy",
    summary: "The policies in force, in the order in which they are asked",
    answer: answers("All of them.", standing),
    refusals: [],
  },
  "admin.plugins": {
    name: "listPlugins",
    subject: "policy",
    summary: "The plugins among them",
    answer: answers("All of them.", standing),
    refusals: [],
  },
  "admin.test_action": {
    name: "testAction",
    subject: "policy",
    summary: "What policy says of one described action; nothing is dispatched, held or counted",
    body: { schema: explainedActionSchema, example, required: true, limits: null },
    answer: answers("The evaluation.", object({ evaluation: ref("Evaluation") })),
    refusals: ["ENVELOPE_BOUND", "EVIDENCE_UNAVAILABLE"],
  },
  "admin.simulate": {
    name: "simulate",
    subject: "policy",
    summary: "The same for up to 100 actions, each by itself",
    body: {
      schema: closed(
        {
          actions: list(describedActionSchema, {
            minItems: 1,
            maxItems: 100,
            description: "a list of 1 to 100 actions",
          }),
          explain,
        },
        ["explain"],
      ),
      example: { actions: [example] },
      required: true,
      limits: null,
    },
    answer: answers("An evaluation for each action.", object({ items: list(ref("Evaluation")) })),
    refusals: ["ENVELOPE_BOUND", "EVIDENCE_UNAVAILABLE"],
  },
  "admin.shadow_decisions": {
    name: "listShadowDecisions",
    subject: "policy",
    summary: "List the reviews and blocks of rules and policies in shadow mode since the gateway started",
    query: paging,
    answer: answers("A page of rules.", page(shadowDecision)),
    refusals: [],
  },
};

/** The plugins among the policies in force. */
export function pluginsOf(policies: readonly ActivePolicy[]): readonly ActivePolicy[] {
  return policies.filter(({ kind }) => kind === "plugin");
}
