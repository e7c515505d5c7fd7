import type { Context } from "koa";
import type { ErrorCode } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import type { Permission } from "../action/role.ts";
import type { BodyLimits } from "../http/body.ts";
import type { Port } from "../observe/metrics.ts";
import type { AskedBy } from "./request.ts";

/** What an operation is about; operations of one subject stand together in the document. */
export const subjects = {
  approvals: "Actions that wait for people",
  evidence: "What is on record, and whether it is sound",
  sessions: "How sessions stand, and the kill switch",
  tickets: "Capability tickets",
  manifests: "What agents were sent to do",
  policy: "What judges actions, and what it says of one",
  traffic: "Upstreams, providers, webhooks and usage",
  resilience: "Backups",
  service: "The gateway itself",
} as const;
type Subject = keyof typeof subjects;

/** A part of a path that names one thing. What cannot be the name of any is answered as an unknown one is. */
export interface PathParameter {
  readonly description: string;
  readonly schema: JsonObject;
  /** What is said of one that is not there: `no such ticket`. */
  readonly absent: string;
}

/** One parameter of a query. A list comes as one text with commas, or where it is `repeated` as one parameter an item. */
export interface QueryParameter {
  /** JSON Schema. Its `description` is a noun phrase: refusals go on with it after "expected … to be". */
  readonly schema: JsonObject;
  readonly required?: boolean;
  readonly repeated?: boolean;
}

export interface RequestBody {
  /** JSON Schema, closed; descriptions as those of a parameter. */
  readonly schema: JsonObject;
  /** A body that fits. */
  readonly example: JsonObject;
  /** False: none at all is as good as `{}`. */
  readonly required: boolean;
  /** Null: those of `limits` in the configuration. */
  readonly limits: BodyLimits | null;
}

export interface Answer {
  readonly status: 200 | 202;
  readonly description: string;
  /** The schema of each media type; null for one that is not JSON. */
  readonly content: Readonly<Record<string, JsonObject | null>>;
}

/** One operation of the admin port, as requests are checked by it and as the document tells it. */
export interface Operation {
  /** Unique, and a good name for a method of a client. */
  readonly name: string;
  readonly subject: Subject;
  readonly summary: string;
  readonly params?: Readonly<Record<string, PathParameter>>;
  readonly query?: Readonly<Record<string, QueryParameter>>;
  readonly body?: RequestBody;
  readonly answer: Answer;
  /** How it may refuse, beside what follows from its access, its parameters and its body. */
  readonly refusals: readonly ErrorCode[];
}

/** The operations of some routes; the compiler asks for each. */
export type Operations<Id extends AdminRouteId> = Readonly<Record<Id, Operation>>;

/** What people write to the admin port is small. */
export const smallBody: BodyLimits = {
  bytes: 65_536,
  json: { depth: 8, nodes: 64, stringLength: 65_536, reader: "exact" },
};

/** What an operation does, once its caller may have it and what it asks for fits. */
type AdminHandler<Id extends AdminRouteId> = (
  ctx: Context,
  caller: Principal,
  asked: AskedBy<Id>,
) => Promise<void> | void;

/** The handlers of operations; the compiler asks for each. */
export type AdminHandlers<Id extends AdminRouteId = Exclude<AdminRouteId, PublicRouteId>> = {
  readonly [id in Id]: AdminHandler<id>;
};

/**
 * Who may call a route. `public`: anyone who reaches the port. `caller`: a key, or anyone where
 * `mcp_gateway.require_auth` is false. `key`: any key, always. A permission: a key whose role carries it.
 */
export type Access = "public" | "caller" | "key" | Permission;

export interface Route {
  readonly port: Port;
  readonly method: "GET" | "HEAD" | "POST" | "DELETE";
  readonly path: string;
  readonly access: Access;
}

const table = {
  "mcp.post": { port: "gateway", method: "POST", path: "/mcp", access: "caller" },
  "mcp.stream": { port: "gateway", method: "GET", path: "/mcp", access: "caller" },
  "mcp.end": { port: "gateway", method: "DELETE", path: "/mcp", access: "caller" },
  "sse.open": { port: "gateway", method: "GET", path: "/sse", access: "key" },
  "sse.post": { port: "gateway", method: "POST", path: "/mcp/session/:id", access: "key" },
  "model.chat": { port: "gateway", method: "POST", path: "/v1/chat/completions", access: "key" },
  "model.messages": { port: "gateway", method: "POST", path: "/v1/messages", access: "key" },
  "model.count": { port: "gateway", method: "POST", path: "/v1/messages/count_tokens", access: "key" },
  "model.list": { port: "gateway", method: "GET", path: "/v1/models", access: "key" },
  // A request to upgrade never gets this far.
  "live.open": { port: "gateway", method: "GET", path: "/v1/ws", access: "public" },
  "gateway.health": { port: "gateway", method: "GET", path: "/health", access: "public" },
  "admin.health": { port: "admin", method: "GET", path: "/health", access: "public" },
  "admin.metrics": { port: "admin", method: "GET", path: "/metrics", access: "metrics.read" },
  "admin.sessions": { port: "admin", method: "GET", path: "/admin/v1/evidence/sessions", access: "evidence.read" },
  "admin.session": { port: "admin", method: "GET", path: "/admin/v1/evidence/sessions/:id", access: "evidence.read" },
  "admin.export": {
    port: "admin",
    method: "GET",
    path: "/admin/v1/evidence/sessions/:id/export",
    access: "evidence.read",
  },
  "admin.report": {
    port: "admin",
    method: "GET",
    path: "/admin/v1/evidence/sessions/:id/report",
    access: "evidence.read",
  },
  "admin.verify": { port: "admin", method: "POST", path: "/admin/v1/audit/verify", access: "evidence.verify" },
  "admin.evidence_verify": {
    port: "admin",
    method: "POST",
    path: "/admin/v1/evidence/verify",
    access: "evidence.verify",
  },
  "admin.checkpoint": { port: "admin", method: "GET", path: "/admin/v1/evidence/checkpoint", access: "evidence.read" },
  "admin.keys": { port: "admin", method: "GET", path: "/admin/v1/evidence/keys", access: "evidence.read" },
  "admin.rotate": { port: "admin", method: "POST", path: "/admin/v1/evidence/keys/rotate", access: "evidence.rotate" },
  "admin.approvals": { port: "admin", method: "GET", path: "/admin/v1/approvals", access: "approval.read" },
  // Before the row that takes any id: the first that fits answers.
  "admin.approval_history": {
    port: "admin",
    method: "GET",
    path: "/admin/v1/approvals/history",
    access: "approval.read",
  },
  "admin.approval": { port: "admin", method: "GET", path: "/admin/v1/approvals/:id", access: "approval.read" },
  "admin.approve": {
    port: "admin",
    method: "POST",
    path: "/admin/v1/approvals/:id/approve",
    access: "approval.review",
  },
  "admin.deny": { port: "admin", method: "POST", path: "/admin/v1/approvals/:id/deny", access: "approval.review" },
  "admin.break_glass": { port: "admin", method: "GET", path: "/admin/v1/break-glass", access: "approval.read" },
  "admin.break_glass_close": {
    port: "admin",
    method: "POST",
    path: "/admin/v1/break-glass/:id/close",
    access: "approval.break_glass",
  },
  "admin.explain": {
    port: "admin",
    method: "GET",
    path: "/admin/v1/decisions/:id/explanation",
    access: "evidence.disclose",
  },
  "admin.policies": { port: "admin", method: "GET", path: "/admin/v1/policies", access: "policy.read" },
  "admin.plugins": { port: "admin", method: "GET", path: "/admin/v1/plugins", access: "policy.read" },
  "admin.test_action": { port: "admin", method: "POST", path: "/admin/v1/test-action", access: "policy.test" },
  "admin.simulate": { port: "admin", method: "POST", path: "/admin/v1/simulate", access: "policy.test" },
  "admin.shadow_decisions": { port: "admin", method: "GET", path: "/admin/v1/shadow-decisions", access: "policy.read" },
  "admin.graphql": { port: "admin", method: "POST", path: "/admin/v1/graphql", access: "key" },
  "admin.graphql_get": { port: "admin", method: "GET", path: "/admin/v1/graphql", access: "key" },
  "admin.usage": { port: "admin", method: "GET", path: "/admin/v1/usage", access: "usage.read" },
  "admin.upstreams": { port: "admin", method: "GET", path: "/admin/v1/upstreams", access: "upstream.read" },
  "admin.providers": { port: "admin", method: "GET", path: "/admin/v1/providers", access: "provider.read" },
  "admin.dead_letters": {
    port: "admin",
    method: "GET",
    path: "/admin/v1/webhooks/dead-letters",
    access: "webhook.read",
  },
  "admin.redeliver": {
    port: "admin",
    method: "POST",
    path: "/admin/v1/webhooks/dead-letters/:id/redeliver",
    access: "webhook.redeliver",
  },
  "admin.session_list": { port: "admin", method: "GET", path: "/admin/v1/sessions", access: "session.read" },
  "admin.killed": { port: "admin", method: "GET", path: "/admin/v1/sessions/killed", access: "evidence.read" },
  "admin.kills": { port: "admin", method: "GET", path: "/admin/v1/kills", access: "evidence.read" },
  "admin.kill_scope": { port: "admin", method: "POST", path: "/admin/v1/kills", access: "session.kill" },
  "admin.release_scope": { port: "admin", method: "POST", path: "/admin/v1/kills/release", access: "session.kill" },
  "admin.session_state": { port: "admin", method: "GET", path: "/admin/v1/sessions/:id", access: "session.read" },
  "admin.session_reset": {
    port: "admin",
    method: "POST",
    path: "/admin/v1/sessions/:id/reset",
    access: "session.kill",
  },
  "admin.kill": { port: "admin", method: "POST", path: "/admin/v1/sessions/:id/kill", access: "session.kill" },
  "admin.release": { port: "admin", method: "POST", path: "/admin/v1/sessions/:id/release", access: "session.kill" },
  "admin.tickets": { port: "admin", method: "GET", path: "/admin/v1/tickets", access: "ticket.read" },
  "admin.ticket_issue": { port: "admin", method: "POST", path: "/admin/v1/tickets", access: "ticket.issue" },
  "admin.ticket_keys": { port: "admin", method: "GET", path: "/admin/v1/ticket-keys", access: "ticket.read" },
  "admin.ticket_revoke": { port: "admin", method: "DELETE", path: "/admin/v1/tickets/:id", access: "ticket.issue" },
  "admin.backup": { port: "admin", method: "POST", path: "/admin/v1/resilience/backup", access: "backup.create" },
  "admin.backups": { port: "admin", method: "GET", path: "/admin/v1/resilience/backups", access: "backup.read" },
  "admin.manifests": { port: "admin", method: "GET", path: "/admin/v1/manifests", access: "manifest.read" },
  "admin.manifest": { port: "admin", method: "GET", path: "/admin/v1/manifests/:task", access: "manifest.read" },
  "admin.declare": { port: "admin", method: "POST", path: "/admin/v1/manifests", access: "manifest.write" },
  "admin.withdraw": { port: "admin", method: "DELETE", path: "/admin/v1/manifests/:task", access: "manifest.write" },
  "admin.openapi": { port: "admin", method: "GET", path: "/admin/v1/openapi.json", access: "key" },
  "dashboard.page": { port: "metrics", method: "GET", path: "/", access: "public" },
  "dashboard.style": { port: "metrics", method: "GET", path: "/assets/dashboard.css", access: "public" },
  "dashboard.script": { port: "metrics", method: "GET", path: "/assets/dashboard.js", access: "public" },
  "dashboard.icon": { port: "metrics", method: "GET", path: "/assets/icon.svg", access: "public" },
  "dashboard.live": { port: "metrics", method: "GET", path: "/v1/ws", access: "public" },
  "metrics.health": { port: "metrics", method: "GET", path: "/health", access: "public" },
  "metrics.scrape": { port: "metrics", method: "GET", path: "/metrics", access: "public" },
} as const;

export type RouteId = keyof typeof table;

/** The routes of the admin port. */
export type AdminRouteId = Extract<RouteId, `admin.${string}`>;

/** The routes that nobody needs a key for; their handlers get no caller. */
export type PublicRouteId = { [id in RouteId]: (typeof table)[id]["access"] extends "public" ? id : never }[RouteId];

/**
 * Every route of the service. Handlers are attached by id, so a row without a handler does not compile,
 * and the access tests are generated from these rows. `GET` serves `HEAD` too.
 */
export const routes: Readonly<Record<RouteId, Route>> = table;
