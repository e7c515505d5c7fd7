import type { Static, TObject, TSchema } from "@sinclair/typebox";
import type { ClientIdentity } from "../action/envelope.ts";
import { type ErrorCode, GatewayError } from "../action/error.ts";
import type { JsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { can, type Permission } from "../action/role.ts";
import type { JsonBounds } from "../action/strict-json.ts";

/** The groups that operations are documented in. */
export const operationTags = {
  approvals: "Review of held actions",
  evidence: "Recorded evidence and its verification",
  definitions: "Review of tool definitions",
  sessions: "Session state and the kill switch",
  tickets: "Capability tickets",
  manifests: "Task manifests",
  policy: "Policies in force, and what they decide",
  traffic: "Upstreams, providers, webhooks and usage",
  resilience: "Backups",
  service: "The gateway itself",
} as const;

/**
 * The callers of a route. `public`: everyone who reaches the port. `caller`: a key, or everyone where
 * `mcp_gateway.require_auth` is false. `key`: any key. A permission: a key whose role has it.
 */
export type Access = "public" | "caller" | "key" | Permission;

/** Limits of a request body. */
export interface BodyLimits {
  readonly bytes: number;
  readonly json: JsonBounds;
}

/** The limits of a body that a person writes. */
export const smallBody: BodyLimits = {
  bytes: 65_536,
  json: { depth: 8, nodes: 64, stringLength: 65_536, reader: "exact" },
};

/** The part of a path that names one thing. A name that does not fit the schema is refused as an unknown one is. */
export interface PathParameter {
  readonly description: string;
  readonly schema: TSchema;
  /** The detail of the NOT_FOUND: `no such ticket`. */
  readonly absent: string;
  /** True where it names a session: by its id, the beginning of one, or its label. The handler gets the id. */
  readonly isSession?: true;
}

export interface RequestBody<Schema extends TSchema = TSchema> {
  /** Descriptions are noun phrases: errors continue with them after "expected … to be". */
  readonly schema: Schema;
  /** A body that the schema accepts. */
  readonly example: JsonObject;
  /** False: an absent body counts as `{}`. */
  readonly required: boolean;
  /** Null: `limits` of the configuration. */
  readonly limits: BodyLimits | null;
}

export interface OperationResponse {
  readonly status: 200 | 202;
  readonly description: string;
  /** The schema of each media type; null where it is not JSON. */
  readonly content: Readonly<Record<string, TSchema | null>>;
}

/**
 * One operation of the admin port: the route, the access check, request validation, the OpenAPI document and the
 * command line are all made from it. Plain data, loaded without what serves it.
 */
export interface AdminOperation {
  /** Names the operation in metrics, logs and evidence. */
  readonly id: `admin.${string}`;
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly access: Access;
  readonly tag: keyof typeof operationTags;
  readonly summary: string;
  readonly params?: Readonly<Record<string, PathParameter>>;
  readonly query?: TObject;
  /** Query parameters of type array that come as one parameter an item, not as one text with commas. */
  readonly repeated?: readonly string[];
  readonly body?: RequestBody;
  /** True for a POST that changes nothing and has no body: it need not say that it is JSON. */
  readonly isReading?: boolean;
  readonly response: OperationResponse;
  /** Error codes beyond those that follow from access, parameters and body. */
  readonly errors: readonly ErrorCode[];
  /** The member of the body whose id a refused attempt is recorded with, where the path has no `:id`. */
  readonly subjectMember?: string;
  /** The member of the body that names a session as a path does, unless the body's `scope` is another. */
  readonly sessionMember?: string;
}

/** Returns whether an operation may change something. */
export function changes({ method, isReading = false }: AdminOperation): boolean {
  return method !== "GET" && !isReading;
}

/** Returns whether an operation takes the name of a session, which several sessions may have. */
export function takesSession({ params, sessionMember }: AdminOperation): boolean {
  return sessionMember !== undefined || params?.id?.isSession === true;
}

/** The operations of a feature by their `operationId`, which is also a good name for a method of a client. */
export type AdminOperations = Readonly<Record<string, AdminOperation>>;

/** A request that its operation's schemas accept. */
export interface AdminRequest<Query = unknown, Body = unknown> {
  /** The path parameter; empty where the path has none. */
  readonly id: string;
  readonly query: Query;
  readonly body: Body;
  readonly client: ClientIdentity;
  /** The `Accept` header. */
  readonly accept: string | undefined;
}

type QueryOf<Operation> = Operation extends { readonly query: infer Query extends TSchema } ? Static<Query> : unknown;
type BodyOf<Operation> = Operation extends { readonly body: { readonly schema: infer Body extends TSchema } }
  ? Static<Body>
  : unknown;
type CallerOf<Operation> = Operation extends { readonly access: "public" } ? null : Principal;

/** Serves one operation, once its caller is admitted and the request is valid. Returns the body, or an `AdminReply`. */
type AdminHandler<Operation> = (
  caller: CallerOf<Operation>,
  request: AdminRequest<QueryOf<Operation>, BodyOf<Operation>>,
) => unknown;

/** A handler for each operation of a feature. */
export type AdminHandlers<Operations> = { readonly [Name in keyof Operations]: AdminHandler<Operations[Name]> };

/** A reply that is not plain JSON with the operation's status. */
export class AdminReply {
  readonly body: string | Buffer | object;
  readonly options: ReplyOptions;

  constructor(body: string | Buffer | object, options: ReplyOptions) {
    this.body = body;
    this.options = options;
  }
}

interface ReplyOptions {
  readonly type?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export function replyWith(body: string | Buffer | object, options: ReplyOptions): AdminReply {
  return new AdminReply(body, options);
}

/** An operation with its handler, as the admin port mounts it. */
export interface ServedOperation {
  readonly operation: AdminOperation;
  readonly handle: (caller: Principal | null, request: AdminRequest) => unknown;
}

/** Pairs each operation of a feature with its handler. */
export function serveOperations<Operations extends AdminOperations>(
  operations: Operations,
  handlers: AdminHandlers<Operations>,
): readonly ServedOperation[] {
  return Object.entries(operations).map(([name, operation]) => ({
    operation,
    handle: handlers[name] as ServedOperation["handle"],
  }));
}

/** Throws ROLE_FORBIDDEN where the caller's role lacks the permission that `access` requires. */
export function checkAccess({ role }: Principal, access: Access): void {
  if (access === "public" || access === "caller" || access === "key" || can(role, access)) return;
  throw new GatewayError("ROLE_FORBIDDEN", `\`${role}\` lacks \`${access}\``);
}
