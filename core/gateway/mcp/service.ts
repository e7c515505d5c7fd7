import { AuthorizedAction } from "../../action/authorized-action.ts";
import { type ActionEnvelope, everyUpstream } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";
import { type TraceContext, traceparentOf } from "../../action/trace.ts";
import type { Answer } from "../../road/dispatch.ts";
import { runAction } from "../../road/run.ts";
import type { Exchange, UpstreamConnection } from "../../upstream/connection.ts";
import { dispatchAction, requestOf } from "../../upstream/dispatch.ts";
import { answerOf, answerOfResult, type CallParts, type ResponseBody, serveCall } from "./call.ts";
import type { Caller, OpenRequest } from "./caller.ts";
import { type ClientRequestParts, relayToClient } from "./client-request.ts";
import { discoverResult, type GatewayIdentity, mergeCapabilities } from "./handshake.ts";
import { type ListParts, serveList } from "./list.ts";
import { type ListenParts, serveListen } from "./listen.ts";
import { findMethod, type McpMethod, pickParams } from "./method.ts";
import { NotificationLane, type RelayParts, relayNotification } from "./notification.ts";
import { replyOf } from "./refusal.ts";
import type { Reply } from "./reply.ts";
import { steeringMeta } from "./request-meta.ts";

export interface McpServiceParts extends CallParts, ListenParts, ClientRequestParts, RelayParts {
  readonly identity: GatewayIdentity;
}

/** Serves one request of an identified caller. Rejects with the GatewayError to respond with. */
export async function serveRequest(
  parts: McpServiceParts,
  caller: Caller,
  request: JsonRpcRequest,
  reply: Reply,
  signal: AbortSignal,
): Promise<JsonRpcResponse> {
  if (caller.era.era === "modern" && request.method === "server/discover") return discover(parts, caller, request);
  if (caller.era.era === "legacy" && request.method === "ping") return { jsonrpc: "2.0", id: request.id, result: {} };
  const row = findMethod(request.method, caller.era.era);
  if (row.routing === "list" || row.routing === "every") await requireCapability(caller, row, request.method);
  if (row.routing === "list") return serveList(parts, caller, request);
  if (row.routing === "every") return serveBroadcast(parts, caller, row, request);
  if (row.routing === "listen") return serveListen(parts, caller, row, request, reply, signal);
  const open = { caller, request, reply, signal };
  return serveCall(parts, open, row, (...sent) => send(parts, open, ...sent));
}

async function discover(parts: McpServiceParts, caller: Caller, request: JsonRpcRequest): Promise<JsonRpcResponse> {
  const servers = (await caller.group.open()).map(({ server }) => server);
  return { jsonrpc: "2.0", id: request.id, result: discoverResult(parts.identity, servers) };
}

/** Throws METHOD_UNKNOWN for what no upstream can serve, so that declared capabilities and responses agree. */
async function requireCapability(caller: Caller, row: McpMethod, method: string): Promise<void> {
  const able = mergeCapabilities((await caller.group.open()).map(({ server }) => server));
  if (row.needs !== null && !Object.hasOwn(able, row.needs)) throw new GatewayError("METHOD_UNKNOWN", `\`${method}\``);
}

/** Resolves with the upstream's response after every notification that preceded it was relayed. */
async function send(
  parts: McpServiceParts,
  open: OpenRequest,
  connection: UpstreamConnection,
  permission: AuthorizedAction,
  trace: TraceContext | undefined,
): Promise<JsonRpcResponse> {
  if (permission.action.untrusted) open.caller.session?.untrusted.add(connection.upstream);
  const lane = open.caller.session?.lanes.of(connection.upstream) ?? new NotificationLane();
  const exchange = exchangeOf(parts, open, permission.action, lane, trace);
  try {
    return await dispatchAction(connection, permission, exchange);
  } finally {
    await lane.settled;
  }
}

/** The `_meta` of a call, its cancellation, and the handlers of what the upstream sends before its response. */
function exchangeOf(
  parts: McpServiceParts,
  { caller, request, reply, signal }: OpenRequest,
  action: ActionEnvelope,
  lane: NotificationLane,
  trace: TraceContext | undefined,
): Exchange {
  const { target: upstream, untrusted = false } = action;
  const { session } = caller;
  const deliver = (note: JsonRpcNotification): void => {
    if (session === null) reply.send(note);
    else session.deliver(note, reply);
  };
  return {
    meta: steeringMeta(request, trace),
    ...(trace === undefined ? {} : { traceparent: traceparentOf(trace) }),
    signal,
    onNotification: (note) =>
      relayNotification(parts, lane, { upstream, note, untrusted, action: () => action, deliver, signal }),
    onRequest: (question, abort) => relayToClient(parts, caller, { upstream, request: question }, abort, reply),
  };
}

/** Sends a request to every upstream that can serve it; responds with the first error, if any. */
async function serveBroadcast(
  parts: ListParts,
  caller: Caller,
  row: McpMethod,
  request: JsonRpcRequest,
): Promise<JsonRpcResponse> {
  const action = parts.actions.make(caller, {
    tool: request.method,
    target: everyUpstream,
    capability: row.capability ?? "execute",
    arguments: pickParams(row, request.params),
  });
  const reply = replyOf(await runAction(parts.road, action, (permission) => sendToAll(permission, caller, row)));
  return { jsonrpc: "2.0", id: request.id, ...reply };
}

async function sendToAll(permission: AuthorizedAction, caller: Caller, row: McpMethod): Promise<Answer<ResponseBody>> {
  const request = requestOf(AuthorizedAction.spend(permission));
  const able = (await caller.group.open()).filter(
    ({ server }) => row.needs === null || row.needs in server.capabilities,
  );
  const replies = await Promise.all(able.map((connection) => connection.request(request)));
  const failed = replies.find((reply) => "error" in reply);
  return failed === undefined ? answerOfResult({}) : answerOf(failed);
}
