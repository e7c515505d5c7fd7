import type { ApprovalScope, ApprovalState } from "../../kernel/approval.ts";
import type { Json, JsonObject } from "../../kernel/json.ts";
import type { SessionSort } from "../../session/session-ranking.ts";
import type { AskedTicket } from "../../ticket/order.ts";
import type { UsageDimension } from "../../usage/usage-report.ts";
import type { DescribedAction } from "../described-action.ts";
import type { Page } from "../page.ts";
import type { AdminRouteId } from "../route.ts";

/** What a request asks for, once it fits the schemas of its operation. */
export interface Asked<Query = unknown, Body = unknown> {
  /** What its path names; empty where it names nothing. */
  readonly id: string;
  readonly query: Query;
  readonly body: Body;
}

interface Reason {
  readonly reason: string;
}

interface Note {
  readonly note?: string;
}

interface Explaining {
  readonly explain?: boolean;
}

interface Target {
  readonly scope: string;
  readonly subject?: string;
}

/** A page of approvals, of one state where that is given. */
export type ApprovalQuery<State extends ApprovalState> = Page & { readonly state: State };

/** What a reviewer says with a yes. */
export interface Approving {
  readonly comment?: string;
  readonly scope?: ApprovalScope;
  readonly break_glass?: string;
}

export interface UsageAsked extends Page {
  readonly from?: string;
  readonly to?: string;
  readonly by: readonly UsageDimension[];
}

/** A query in GraphQL; `variables` of a URL is text. */
export interface QueryAsked<Variables> {
  readonly query: string;
  readonly variables?: Variables;
  readonly operationName?: string | null;
}

type Redacting = { readonly redact: readonly string[] };

interface AskedOf {
  "admin.sessions": Asked<Page>;
  "admin.session": Asked<Page & { readonly disclose: boolean }>;
  "admin.export": Asked<Redacting>;
  "admin.report": Asked<Redacting & { readonly format: "json" | "md" | "html" }>;
  "admin.approvals": Asked<ApprovalQuery<"pending" | "approved">>;
  "admin.approval_history": Asked<Partial<ApprovalQuery<"denied" | "expired" | "consumed">> & Page>;
  "admin.approve": Asked<unknown, Approving>;
  "admin.deny": Asked<unknown, Pick<Approving, "comment">>;
  "admin.break_glass_close": Asked<unknown, { readonly post_mortem: string }>;
  "admin.test_action": Asked<unknown, DescribedAction & Explaining>;
  "admin.simulate": Asked<unknown, { readonly actions: readonly DescribedAction[] } & Explaining>;
  "admin.would_have": Asked<Page>;
  "admin.graphql": Asked<unknown, QueryAsked<JsonObject | null>>;
  "admin.graphql_get": Asked<QueryAsked<string>>;
  "admin.usage": Asked<UsageAsked>;
  "admin.dead_letters": Asked<Page>;
  "admin.session_list": Asked<Page & { readonly sort: SessionSort }>;
  "admin.session_reset": Asked<unknown, Reason>;
  "admin.killed": Asked<Page>;
  "admin.kills": Asked<Page>;
  "admin.kill_scope": Asked<unknown, Target & Note>;
  "admin.release_scope": Asked<unknown, Target & Reason>;
  "admin.kill": Asked<unknown, Note>;
  "admin.release": Asked<unknown, Reason>;
  "admin.tickets": Asked<Page>;
  "admin.ticket_issue": Asked<unknown, AskedTicket>;
  "admin.ticket_revoke": Asked<unknown, Reason>;
  "admin.backups": Asked<Page>;
  "admin.manifests": Asked<Page>;
  "admin.declare": Asked<unknown, Json>;
}

/** What a request of a route asks for. Each is what the schemas of its operation let through. */
export type AskedBy<Id extends AdminRouteId> = Id extends keyof AskedOf ? AskedOf[Id] : Asked;
