import type { TSchema } from "@sinclair/typebox";
import { type ActivePolicy, modes } from "../action/policy.ts";
import { Type } from "../config/type.ts";
import type { ShadowLog } from "../observe/shadow-log.ts";
import type { AdminHandlers, AdminOperations } from "../operation/operation.ts";
import {
  anyText,
  closed,
  enumOf,
  jsonResponse,
  nullable,
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
  readonly shadowLog: Pick<ShadowLog, "list">;
}

/** Handlers of the policies in force. */
export function policyHandlers({ policies, shadowLog }: PolicySources): AdminHandlers<typeof policyOperations> {
  return {
    listPolicies: () => ({ items: policies(), next: null }),
    listPlugins: () => ({ items: pluginsOf(policies()), next: null }),
    listShadowDecisions: ({ tenant }, { query }) => shadowLog.list(tenant, query),
  };
}

/** The plugins among the policies in force. */
export function pluginsOf(policies: readonly ActivePolicy[]): readonly ActivePolicy[] {
  return policies.filter(({ kind }) => kind === "plugin");
}
