import type { TSchema } from "@sinclair/typebox";
import { decisions } from "../action/decision.ts";
import { GatewayError } from "../action/error.ts";
import { type ActivePolicy, type ActiveRule, modes, severities } from "../action/policy.ts";
import { Type } from "../config/type.ts";
import type { ShadowLog } from "../observe/shadow-log.ts";
import type { AdminHandlers, AdminOperations } from "../operation/operation.ts";
import {
  anyText,
  closed,
  enumOf,
  jsonResponse,
  nullable,
  type PageQuery,
  page,
  paging,
  ref,
  time,
  whole,
  wholeNumber,
} from "../operation/shape.ts";

const kind = enumOf(["pack", "plugin", "engine", "session", "external"]);
const reference = { kind, name: anyText, version: anyText, digest: anyText, signer: nullable(anyText) };

const shadowDecision = Type.Object({
  decision: enumOf(["review", "block"]),
  rule: anyText,
  policy: Type.Object({ kind, name: anyText }),
  count: wholeNumber,
  last_time: time,
  last_decision: anyText,
});

const activeRule = Type.Object({
  rule: anyText,
  policy: anyText,
  title: anyText,
  decision: enumOf(decisions),
  severity: enumOf(severities),
  mode: enumOf(modes),
  references: Type.Array(anyText),
  expires: nullable(time),
});

/** Components of the document. */
export const policySchemas: Readonly<Record<string, TSchema>> = {
  PolicyRef: Type.Object(reference),
  ActivePolicy: Type.Object({ ...reference, mode: enumOf(modes) }),
};

/** The policies in force. */
export const policyOperations = {
  listPolicies: {
    id: "admin.policies",
    method: "GET",
    path: "/admin/v1/policies",
    access: "policy.read",
    tag: "policy",
    summary: "List the policies in force, in evaluation order",
    response: jsonResponse("The whole list.", whole(ref("ActivePolicy"))),
    errors: [],
  },
  listPlugins: {
    id: "admin.plugins",
    method: "GET",
    path: "/admin/v1/plugins",
    access: "policy.read",
    tag: "policy",
    summary: "List the plugins in force",
    response: jsonResponse("The whole list.", whole(ref("ActivePolicy"))),
    errors: [],
  },
  listRules: {
    id: "admin.rules",
    method: "GET",
    path: "/admin/v1/policies/rules",
    access: "policy.read",
    tag: "policy",
    summary:
      "List the rules of the packs in force, in evaluation order, with the items of OWASP and CWE they are about",
    query: closed(paging),
    response: jsonResponse("A page of rules.", page(activeRule)),
    errors: [],
  },
  listShadowDecisions: {
    id: "admin.shadow_decisions",
    method: "GET",
    path: "/admin/v1/shadow-decisions",
    access: "policy.read",
    tag: "policy",
    summary: "List the reviews and blocks of rules and policies in shadow mode since the gateway started",
    query: closed(paging),
    response: jsonResponse("A page of rules.", page(shadowDecision)),
    errors: [],
  },
} as const satisfies AdminOperations;

interface PolicySources {
  readonly policies: () => readonly ActivePolicy[];
  readonly rules: () => readonly ActiveRule[];
  readonly shadowLog: Pick<ShadowLog, "list">;
}

/** Handlers of the policies in force. */
export function policyHandlers({ policies, rules, shadowLog }: PolicySources): AdminHandlers<typeof policyOperations> {
  return {
    listPolicies: () => ({ items: policies(), next: null }),
    listPlugins: () => ({ items: pluginsOf(policies()), next: null }),
    listRules: (_, { query }) => pageOfRules(rules(), query),
    listShadowDecisions: ({ tenant }, { query }) => shadowLog.list(tenant, query),
  };
}

/** One page of rules. A reload between two pages may show a rule twice, or leave one out. */
function pageOfRules(rules: readonly ActiveRule[], { limit, cursor = "0" }: PageQuery): object {
  if (!/^\d{1,9}$/.test(cursor)) {
    throw new GatewayError("INVALID_PARAMS", "expected `cursor` to be the `next` of an earlier page");
  }
  const from = Number(cursor);
  const end = from + limit;
  return { items: rules.slice(from, end), next: end < rules.length ? String(end) : null };
}

/** The plugins among the policies in force. */
export function pluginsOf(policies: readonly ActivePolicy[]): readonly ActivePolicy[] {
  return policies.filter(({ kind }) => kind === "plugin");
}
