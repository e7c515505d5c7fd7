import { AuthorizedAction } from "../../action/authorized-action.ts";
import type { Capability } from "../../action/capability.ts";
import { GatewayError } from "../../action/error.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";
import type { ActionFactory } from "../../road/action-factory.ts";
import type { Answer } from "../../road/dispatch.ts";
import { judgeNotification, type Road, runAction } from "../../road/run.ts";
import { answerOf, answerOfFault, mcpErrorBody, type ResponseBody, replyOf } from "./answer.ts";
import type { Caller } from "./caller.ts";
import type { Reply } from "./reply.ts";

/** The requests that an upstream may send to a client. Any other method is unknown. */
const clientMethods: Readonly<Record<string, { capability: Capability; needs: string }>> = {
  "sampling/createMessage": { capability: "generate", needs: "sampling" },
  "elicitation/create": { capability: "read", needs: "elicitation" },
  "roots/list": { capability: "read", needs: "roots" },
};

/** A request of an upstream to a client. */
interface Question {
  readonly upstream: string;
  readonly request: JsonRpcRequest;
}

/** A person may have to answer. */
const answerMs = 300_000;

export interface ClientRequestParts {
  readonly road: Road;
  readonly actions: ActionFactory;
  readonly newId: () => string;
  /** Called for each request that is answered with an error, with the id in that response. */
  readonly onFault: (requestId: string, error: GatewayError) => void;
}

/**
 * Governs an upstream's request to the client like the client's own: evaluated, recorded, then sent. Never rejects: the
 * upstream gets a JSON-RPC error.
 */
export async function relayToClient(
  parts: ClientRequestParts,
  caller: Caller,
  { upstream, request }: Question,
  signal: AbortSignal,
  via?: Reply,
): Promise<JsonRpcResponse> {
  if (request.method === "ping") return { jsonrpc: "2.0", id: request.id, result: {} };
  try {
    const { method: tool, params = {} } = request;
    const { capability } = findClientMethod(caller, tool);
    const mixed = caller.session?.untrusted.has(upstream) || parts.actions.isUntrusted(upstream, tool);
    // A request without params, as `roots/list`, brings no content in.
    const untrusted = mixed && Object.keys(params).length > 0;
    const action = parts.actions.make(caller, { tool, target: upstream, capability, arguments: params, untrusted });
    const reply = replyOf(
      await runAction(parts.road, action, (permission) =>
        ask(parts.road, permission, { caller, request, signal, via }),
      ),
    );
    return { jsonrpc: "2.0", id: request.id, ...reply };
  } catch (cause) {
    const [requestId, error] = [parts.newId(), GatewayError.from(cause)];
    parts.onFault(requestId, error);
    return mcpErrorBody(error, request.id, requestId);
  }
}

function findClientMethod(caller: Caller, method: string): { capability: Capability } {
  const row = Object.hasOwn(clientMethods, method) ? clientMethods[method] : undefined;
  if (row === undefined || caller.session?.owner.capabilities[row.needs] === undefined) {
    throw new GatewayError("METHOD_UNKNOWN", `\`${method}\``);
  }
  return row;
}

interface Asking {
  readonly caller: Caller;
  readonly request: JsonRpcRequest;
  readonly signal: AbortSignal;
  readonly via: Reply | undefined;
}

async function ask(
  road: Road,
  permission: AuthorizedAction,
  { caller, request, signal, via }: Asking,
): Promise<Answer<ResponseBody | GatewayError>> {
  const { action } = permission;
  const { tool, arguments: params } = AuthorizedAction.spend(permission);
  const { session } = caller;
  if (session === null) throw new GatewayError("METHOD_UNKNOWN", `\`${tool}\``);
  const left = action.untrusted ? await judgeNotification(road, action, params) : params;
  if (left === null) return answerOfFault(new GatewayError("POLICY_BLOCKED", "the client may not be asked that"));
  const judged = { jsonrpc: "2.0", id: request.id, method: tool, params: left } as JsonRpcRequest;
  return answerOf(await answerInTime(signal, (until) => session.ask(judged, until, via)));
}

/** Resolves as `ask` does, unless `signal` or the deadline aborts first: then it rejects with the reason. */
async function answerInTime<T>(signal: AbortSignal, ask: (until: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = new AbortController();
  const late = new GatewayError("CLIENT_TIMEOUT", `expected an answer within ${answerMs} ms`);
  const timer = setTimeout(() => deadline.abort(late), answerMs).unref();
  try {
    return await ask(AbortSignal.any([signal, deadline.signal]));
  } finally {
    clearTimeout(timer);
  }
}
