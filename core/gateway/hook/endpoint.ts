import type { Context } from "koa";
import { GatewayError } from "../../action/error.ts";
import type { Json } from "../../action/json.ts";
import { type Principal, sessionScope } from "../../action/principal.ts";
import { agentIdentity } from "../../http/access.ts";
import { retryAfterHeader } from "../../http/refusal.ts";
import { readGatewayBody } from "../../http/request.ts";
import { sessionLabel, singleHeader } from "../../identity/key-ring.ts";
import { bindTask, type TaskBinding } from "../../manifest/task-binding.ts";
import type { BodyLimits } from "../../operation/operation.ts";
import type { InFlight } from "../../road/in-flight.ts";
import { ticketHeader } from "../../ticket/ticket-verifier.ts";
import { decisionHeader, errorHeader } from "./agent-form.ts";
import { hookVerdict, permissionAnswer } from "./answer.ts";
import { type DirectAction, maxAskedWaitMs, readDirectAction } from "./direct-action.ts";
import { agentForm, hookAgents } from "./hook-agent.ts";
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

  /** POST `/v1/hooks/{agent}`: the payload of an agent's own hook, answered in the agent's own form. */
  async hook(ctx: Context, principal: Principal): Promise<void> {
    const form = agentForm(String(ctx.params.agent));
    if (form === undefined) throw new GatewayError("NOT_FOUND", `expected one of ${hookAgents.join(", ")}`);
    const waitMs = readWait(ctx.query.wait_ms);
    const { action, session } = form.read(await this.#readBody(ctx, principal));
    const label = sessionLabel(ctx.req.rawHeaders) ?? session;
    const verdict = hookVerdict(await this.#request(ctx, principal, label, { ...action, waitMs }));
    ctx.set(decisionHeader, verdict.decision);
    ctx.body = form.answer(verdict);
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

function readWait(text: string | string[] | undefined): number {
  const waitMs =
    text === undefined ? 0 : typeof text === "string" && /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (waitMs <= maxAskedWaitMs) return waitMs;
  throw new GatewayError("INVALID_PARAMS", `expected \`wait_ms\` to be milliseconds, 0 to ${maxAskedWaitMs}`);
}

/**
 * Renders an error for an agent's hook: a denial in the agent's own form, with status 200, because agents let the tool run
 * where the status of an answer says failure. False: on another path.
 */
export function renderHookError(ctx: Context, error: GatewayError, requestId: string): boolean {
  const form = ctx.state.route === "action.hook" ? agentForm(String(ctx.params?.agent)) : undefined;
  if (form === undefined) return false;
  ctx.status = 200;
  ctx.set({ [decisionHeader]: "block", [errorHeader]: error.code, ...retryAfterHeader(error) });
  const reason = `The gateway could not decide, so the tool does not run: ${error.publicMessage}. Request ${requestId}.`;
  ctx.body = form.answer({ decision: "block", reason });
  return true;
}
