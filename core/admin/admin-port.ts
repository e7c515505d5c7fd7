import type { Context } from "koa";
import { GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import { type AccessRule, addressOf, checkRole } from "../http/access.ts";
import type { AdminRate } from "../http/rate.ts";
import type { RefusedAttempts } from "../http/refused-attempt.ts";
import { type AdminHandlers, type RouteId, routes } from "../operation/operation.ts";
import type { Asked } from "../operation/request.ts";
import type { RequestReader } from "./api/request-reader.ts";

/** A route of the admin port that needs a key. */
export type OperationId = keyof AdminHandlers;

interface AdminPortParts {
  readonly accessRule: AccessRule;
  readonly rate: AdminRate;
  readonly reader: RequestReader;
  readonly attempts: RefusedAttempts;
}

type Handle = (ctx: Context, caller: Principal, asked: Asked) => Promise<void> | void;

/**
 * What every request of an operation goes through before anything is done: whose key it has, how often they asked,
 * whether their role may, and whether what it asks for fits. What is refused for who asks goes on record before it is
 * answered.
 */
export class AdminPort {
  readonly #parts: AdminPortParts;

  constructor(parts: AdminPortParts) {
    this.#parts = parts;
  }

  async serve(id: OperationId, handlers: AdminHandlers, ctx: Context): Promise<void> {
    const { reader, attempts } = this.#parts;
    const caller = this.#identify(id, ctx);
    try {
      checkRole(caller, routes[id].access);
      await (handlers[id] as Handle)(ctx, caller, await reader.read(id, ctx));
    } catch (cause) {
      throw await attempts.settle(caller, { route: id, subject: subjectOf(ctx) }, GatewayError.from(cause));
    }
  }

  #identify(id: OperationId, { req }: Context): Principal {
    const { accessRule, rate } = this.#parts;
    const caller = identified(() => accessRule.identify(routes[id].access, req.rawHeaders));
    if (caller instanceof GatewayError) throw rate.refuse(addressOf(req), caller);
    // Who watches the gateway is to see it when it is asked too much.
    if (id !== "admin.metrics") rate.count(caller);
    return caller;
  }
}

/** Whether a route is an operation of the admin port: all of its own are but its health, which needs no key. */
export function isOperation(id: RouteId): id is OperationId {
  return routes[id].port === "admin" && routes[id].access !== "public";
}

function identified(identify: () => Principal | null): Principal | GatewayError {
  try {
    return identify() ?? new GatewayError("KEY_MISSING");
  } catch (cause) {
    return GatewayError.from(cause);
  }
}

/** The id that a request is about: in its path, or in a body that its handler has read. */
function subjectOf({ params, state }: Context): unknown {
  return params.id ?? state.subject;
}
