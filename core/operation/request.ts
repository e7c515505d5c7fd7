import type { ApprovalScope, ApprovalState } from "../action/approval.ts";
import type { Json, JsonObject } from "../action/json.ts";
import type { DescribedAction } from "../road/described-action.ts";
import type { SessionSort } from "../session/session-directory.ts";
import type { AskedTicket } from "../ticket/ticket-issuer.ts";
import type { UsageDimension } from "../usage/usage-report.ts";
import type { AdminRouteId, PathParameter, QueryParameter } from "./operation.ts";
import { maxCursor, maxPage, type Page, usualPage } from "./shape.ts";

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
type ApprovalQuery<State extends ApprovalState> = Page & { readonly state: State };

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
  "admin.shadow_decisions": Asked<Page>;
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

const limit: QueryParameter = {
  schema: {
    type: "integer",
    minimum: 1,
    maximum: maxPage,
    default: usualPage,
    description: `an integer from 1 to ${maxPage}: the items of a page`,
  },
};

const cursor: QueryParameter = {
  schema: {
    type: "string",
    pattern: `^[\\x21-\\x7e]{1,${maxCursor}}$`,
    description: "the `next` of an earlier page",
  },
};

/** What every list takes. */
export const paging: Readonly<Record<"limit" | "cursor", QueryParameter>> = { limit, cursor };

/** What lists of approvals take: their cursors are ids. */
export const approvalPaging: typeof paging = {
  limit,
  cursor: { schema: { type: "string", pattern: "^apr_[0-9a-f]{32}$", description: "the `next` of an earlier page" } },
};

function named(noun: string, pattern: string, absent: string = `no such ${noun}`): PathParameter {
  return { description: `The id of the ${noun}.`, schema: { type: "string", pattern }, absent };
}

export const approvalId: PathParameter = named("approval", "^apr_[0-9a-f]{32}$");
export const decisionId: PathParameter = named(
  "decision",
  "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
);
export const sessionId: PathParameter = named("session", "^session-v1-[0-9a-f]{64}$");
export const ticketId: PathParameter = named("ticket", "^tkt_[0-9a-f]{32}$");
export const taskName: PathParameter = named("manifest", "^[a-z0-9][a-z0-9._-]{0,63}$");
export const letterId: PathParameter = named(
  "dead letter",
  "^[A-Za-z0-9_-]{1,64}$",
  "no such dead letter, or its webhook is configured no more",
);

/** A list of one parameter, parted by commas. */
export function someOf(all: readonly string[], description: string): QueryParameter {
  const schema: JsonObject = {
    type: "array",
    items: { type: "string", enum: all },
    minItems: 1,
    uniqueItems: true,
    default: all,
    description,
  };
  return { schema };
}

/** One word out of several; `usual` where it is left out. */
export function choice(all: readonly string[], usual?: string): QueryParameter {
  return {
    schema: {
      type: "string",
      enum: all,
      description: `one of ${all.map((word) => `\`${word}\``).join(", ")}`,
      ...(usual === undefined ? {} : { default: usual }),
    },
  };
}
