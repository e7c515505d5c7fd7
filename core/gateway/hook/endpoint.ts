import type { Context } from "koa";
import { GatewayError } from "../../action/error.ts";
import type { Json } from "../../action/json.ts";
import { type Principal, sessionScope } from "../../action/principal.ts";
import { agentIdentity } from "../../http/access.ts";
import { readGatewayBody } from "../../http/request.ts";
import { sessionLabel, singleHeader } from "../../identity/key-ring.ts";
import { bindTask, type TaskBinding } from "../../manifest/task-binding.ts";
import type { BodyLimits } from "../../operation/operation.ts";
import type { InFlight } from "../../road/in-flight.ts";
import { ticketHeader } from "../../ticket/ticket-verifier.ts";
import { permissionAnswer } from "./answer.ts";
import { type DirectAction, readDirectAction } from "./direct-action.ts";
import { type PermissionParts, type PermissionResult, requestPermission } from "./permission.ts";

interface HookEndpointParts extends PermissionParts {
  readonly body: BodyLimits;
  readonly inFlight: InFlight;
  readonly tasks: TaskBinding;
}

/** The port of agents that act by themselves, and ask before they do. */
export class HookEndpoint {
  readonly #parts: HookEndpointParts;

  constructor(parts: HookEndpointParts) {
    this.#parts = parts;
  }

  /** POST `/v1/actions/evaluate`: an action in the gateway's own terms. HTTP 200 for every decision. */
  async evaluate(ctx: Context, principal: Principal): Promise<void> {
    const action = readDirectAction(await this.#readBody(ctx, principal));
    const permission = await this.#request(ctx, principal, sessionLabel(ctx.req.rawHeaders), action);
    ctx.body = permissionAnswer(permission);
  }

  #readBody(ctx: Context, principal: Principal): Promise<Json> {
    return readGatewayBody(ctx.req, this.#parts.body, this.#parts.fairShare, principal);
  }

  async #request(
    ctx: Context,
    principal: Principal,
    label: string | undefined,
    action: DirectAction,
  ): Promise<PermissionResult> {
    const { tasks, inFlight } = this.#parts;
    const scope = sessionScope("http", principal.tenant, principal.id, label);
    await bindTask(tasks, ctx.req, principal, scope);
    const ticket = singleHeader(ctx.req.rawHeaders, ticketHeader);
    const actor = { principal, scope, client: agentIdentity(ctx.req) };
    const abort = new AbortController();
    ctx.res.once("close", () => {
      if (!ctx.res.writableFinished) abort.abort(new GatewayError("CANCELLED"));
    });
    inFlight.begin(principal, scope.id, abort);
    try {
      return await requestPermission(this.#parts, { actor, action, ticket, signal: abort.signal });
    } finally {
      inFlight.finish(scope.id, abort);
    }
  }
}
