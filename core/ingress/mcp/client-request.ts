import { AuthorizedAction } from "../../kernel/authorized-action.ts";
import type { Capability } from "../../kernel/capability.ts";
import { GatewayError } from "../../kernel/error.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../../kernel/json-rpc.ts";
import type { Answer } from "../../pipeline/answer.ts";
import type { Road } from "../../pipeline/road.ts";
import type { ActionFactory } from "../action-factory.ts";
import { answerOf, type ResponseBody } from "./answer.ts";
import type { Caller } from "./caller.ts";
import { mcpErrorBody } from "./error.ts";
import { replyOf } from "./refusal.ts";
import type { Reply } from "./reply.ts";

/** What an upstream may ask of a client, and how much that is. Everything else it asks does not exist. */
const clientMethods: Readonly<Record<string, { capability: Capability; needs: string }>> = {
  "sampling/createMessage": { capability: "generate", needs: "sampling" },
  "elicitation/create": { capability: "read", needs: "elicitation" },
  "roots/list": { capability: "read", needs: "roots" },
};

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
  upstream: string,
  request: JsonRpcRequest,
  signal: AbortSignal,
  via?: Reply,
): Promise<JsonRpcResponse> {
  if (request.method === "ping") return { jsonrpc: "2.0", id: request.id, result: {} };
  try {
    const row = findClientMethod(caller, request.method);
    const action = parts.actions.make(caller, {
      tool: request.method,
      target: upstream,
      capability: row.capability,
      arguments: request.params ?? {},
    });
    const reply = replyOf(
      await parts.road.travel(action, (permission) => ask(permission, caller, request, signal, via)),
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

async function ask(
  permission: AuthorizedAction,
  caller: Caller,
  request: JsonRpcRequest,
  signal: AbortSignal,
  via: Reply | undefined,
): Promise<Answer<ResponseBody>> {
  const { tool, arguments: params } = AuthorizedAction.spend(permission);
  const { session } = caller;
  if (session === null) throw new GatewayError("METHOD_UNKNOWN", `\`${tool}\``);
  const judged = { jsonrpc: "2.0", id: request.id, method: tool, params } as JsonRpcRequest;
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
