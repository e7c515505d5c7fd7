import { AuthorizedAction } from "../../action/authorized-action.ts";
import type { Capability } from "../../action/capability.ts";
import { GatewayError } from "../../action/error.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";
import type { ActionFactory } from "../../road/action-factory.ts";
import type { Answer } from "../../road/dispatch.ts";
import { judgeNotification, type Road, runAction } from "../../road/run.ts";
import { answerOf, answerOfFault, type ResponseBody } from "./call.ts";
import type { Caller } from "./caller.ts";
import { mcpErrorBody, replyOf } from "./refusal.ts";
import type { Reply } from "./reply.ts";

/** What an upstream may ask of a client, and how much that is. Everything else it asks does not exist. */
const clientMethods: Readonly<Record<string, { capability: Capability; needs: string }>> = {
  "sampling/createMessage": { capability: "generate", needs: "sampling" },
  "elicitation/create": { capability: "read", needs: "elicitation" },
  "roots/list": { capability: "read", needs: "roots" },
};

/** What an upstream asks of a client. */
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
  /** Hears of each request that is answered with an error, by the id that stands in the answer. */
  readonly onFault: (requestId: string, error: GatewayError) => void;
}

/**
 * Takes an upstream's request to the client along the same road as the client's own: judged, recorded, then asked.
 * Never rejects: the upstream gets a JSON-RPC error that says why.
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
    // A question without words, as `roots/list` is, brings nothing in.
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

/** What `ask` resolves with, unless `signal` or the deadline aborts it: then it rejects with why. */
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
