import type { IncomingMessage } from "node:http";
import type { Context } from "koa";
import { GatewayError } from "../action/error.ts";
import { isJsonObject } from "../action/json.ts";
import type { Principal } from "../action/principal.ts";
import { addressOf } from "../http/access.ts";
import type { MountedRoute } from "../http/app.ts";
import type { AdminRate } from "../http/rate.ts";
import type { RefusedAttempts } from "../http/refused-attempt.ts";
import {
  type Access,
  type AdminOperation,
  AdminReply,
  type AdminRequest,
  changes,
  checkAccess,
  replyWith,
  type ServedOperation,
} from "../operation/operation.ts";
import type { SessionNames } from "../session/session-name.ts";
import type { RequestReader } from "./api/request-reader.ts";

/** The way in to the operations on one port. */
export interface Entrance {
  /** Returns the caller of an operation that is not public. Throws where there is none. */
  identify(access: Access, request: IncomingMessage): Principal;
  /** Throws for a request that may not change anything, whatever its caller's role. */
  checkChange(request: IncomingMessage): void;
}

interface AdminPortParts {
  readonly entrance: Entrance;
  readonly rate: AdminRate;
  readonly reader: RequestReader;
  readonly attempts: RefusedAttempts;
  readonly sessionNames: Pick<SessionNames, "resolve">;
}

/** The routes of operations on one port. */
export function mountOperations(
  operations: readonly ServedOperation[],
  parts: AdminPortParts,
): readonly MountedRoute[] {
  return operations.map((served) => {
    const { method, path } = served.operation;
    return { method, path, serve: (ctx) => serve(served, parts, ctx) };
  });
}

/**
 * Serves one request: identifies the caller, counts the request, checks the role, reads the request, runs the handler
 * and renders its result. A refusal that depends on the caller is recorded before it is answered.
 */
async function serve({ operation, handle }: ServedOperation, parts: AdminPortParts, ctx: Context): Promise<void> {
  ctx.state.route = operation.id;
  // Probes may add a query of their own: a public operation has no input.
  if (operation.access === "public") return render(ctx, operation, await handle(null, parts.reader.empty(ctx)));
  const caller = identify(operation, parts, ctx);
  let request: AdminRequest | undefined;
  try {
    checkAccess(caller, operation.access);
    if (changes(operation)) parts.entrance.checkChange(ctx.req);
    request = await parts.reader.read(operation, ctx);
    const named = await resolveSession(operation, parts.sessionNames, caller.tenant, request);
    render(ctx, operation, await handle(caller, named));
  } catch (cause) {
    const subject = ctx.params.id ?? subjectIn(request?.body, operation.subjectMember);
    throw await parts.attempts.settle(caller, { route: operation.id, subject }, GatewayError.from(cause));
  }
}

function identify({ id, access }: AdminOperation, { entrance, rate }: AdminPortParts, { req }: Context): Principal {
  let caller: Principal;
  try {
    caller = entrance.identify(access, req);
  } catch (cause) {
    throw rate.refuse(addressOf(req), GatewayError.from(cause));
  }
  // Scrapes are not limited: overload must stay visible.
  if (id !== "admin.metrics") rate.count(caller);
  return caller;
}

function render(ctx: Context, { response }: AdminOperation, result: unknown): void {
  const { body, options } = result instanceof AdminReply ? result : replyWith(result as object, {});
  ctx.status = options.status ?? response.status;
  ctx.set(options.headers ?? {});
  if (options.type !== undefined) ctx.type = options.type;
  ctx.body = body;
}

/** Returns the request with the id of the session in place of the name that it has for it. Throws as `resolve` does. */
async function resolveSession(
  { params, sessionMember }: AdminOperation,
  names: AdminPortParts["sessionNames"],
  tenant: string,
  request: AdminRequest,
): Promise<AdminRequest> {
  if (params?.id?.isSession) return { ...request, id: await names.resolve(tenant, request.id) };
  if (sessionMember === undefined || !isJsonObject(request.body)) return request;
  const { scope = "session", [sessionMember]: name } = request.body;
  if (scope !== "session" || typeof name !== "string") return request;
  return { ...request, body: { ...request.body, [sessionMember]: await names.resolve(tenant, name) } };
}

/** The id that a body names; undefined where it names none. */
function subjectIn(body: unknown, member: string | undefined): unknown {
  return member === undefined || !isJsonObject(body) ? undefined : body[member];
}
