import type { AuthorizedAction } from "../../action/authorized-action.ts";
import type { Cancellation } from "../../action/cancellation.ts";
import { ticketMetaKey } from "../../action/capability-ticket.ts";
import { type ActionEnvelope, everyUpstream } from "../../action/envelope.ts";
import { GatewayError } from "../../action/error.ts";
import { deepFreeze, isJsonObject, isLarge, type JsonObject } from "../../action/json.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../../action/json-rpc.ts";
import { readTraceContext, type Span, type TraceContext, type Tracer, traceparentOf } from "../../action/trace.ts";
import type { Standing } from "../../definition/published-tool.ts";
import type { FairShare } from "../../http/fair-share.ts";
import type { Attempt } from "../../road/action-factory.ts";
import type { Answer, DispatchTimer } from "../../road/dispatch.ts";
import { runAction } from "../../road/run.ts";
import { presentTicket, type TicketReader } from "../../ticket/ticket-verifier.ts";
import type { Exchange, UpstreamConnection } from "../../upstream/connection.ts";
import { spendOnRequest } from "../../upstream/dispatch.ts";
import { mirroredParams } from "../../upstream/mcp-header.ts";
import type { ListedTool } from "../../upstream/tool-reader.ts";
import { answerOf, answerOfFault, answerOfResult, type ResponseBody, refusedToolResult, replyOf } from "./answer.ts";
import type { Caller, OpenRequest } from "./caller.ts";
import { type ClientRequestParts, relayToClient } from "./client-request.ts";
import { checkParamHeaders } from "./era.ts";
import { discoverResult, type GatewayIdentity, mergeCapabilities } from "./handshake.ts";
import type { Hold } from "./hold.ts";
import { type ListParts, serveList } from "./list.ts";
import { type ListenParts, serveListen } from "./listen.ts";
import { continuationOf, type McpMethod, mcpMethods, pickParams, steeringMeta } from "./method.ts";
import { NotificationLane, type RelayParts, relayNotification } from "./notification.ts";
import type { Reply } from "./reply.ts";

export interface McpServiceParts extends ListenParts, ClientRequestParts, RelayParts {
  readonly identity: GatewayIdentity;
  readonly hold: Hold;
  readonly tickets: TicketReader;
  /** `_meta` keys beyond the protocol's own that are forwarded; policies see them with the arguments. */
  readonly metaPassthrough: readonly string[];
  readonly metrics: DispatchTimer;
  readonly tracer: Tracer;
  readonly fairShare: FairShare;
}

/** Serves one request of an identified caller. Rejects with the GatewayError to respond with. */
export async function serveRequest(
  parts: McpServiceParts,
  caller: Caller,
  request: JsonRpcRequest,
  reply: Reply,
  cancellation: Cancellation,
): Promise<JsonRpcResponse> {
  const { id, method, params } = request;
  const { era } = caller.era;
  if (era === "modern" && method === "server/discover") return discover(parts, caller, request);
  if (era === "legacy" && method === "ping") return { jsonrpc: "2.0", id, result: {} };
  const row = Object.hasOwn(mcpMethods, method) ? mcpMethods[method] : undefined;
  if (row?.eras.includes(era) !== true) throw new GatewayError("METHOD_UNKNOWN", `\`${method}\``);
  if (row.routing === "list" || row.routing === "every") await requireCapability(caller, row, method);
  if (row.routing === "list") return serveList(parts, caller, request);
  if (row.routing === "every") return serveBroadcast(parts, caller, row, request);
  const meta = isJsonObject(params?._meta) ? params._meta : {};
  const open = { caller, request, meta, reply, cancellation };
  if (row.routing === "listen") return serveListen(parts, open, row);
  // As in MCP, `_meta` precedes the header.
  const parent = readTraceContext(meta.traceparent) ?? readTraceContext(caller.traceparent);
  const span = parts.tracer.begin({ protocol: "mcp", method, parent });
  return span.until(serveCall(parts, open, row, span));
}

/**
 * Serves one request by the upstream that owns the named tool, prompt or resource. A held tool call waits for its review
 * and, once approved, runs anew from the beginning: nothing known before the wait is reused after it. A call that is held
 * again does not wait again. A call whose tool turns out to be another when its approval would be used is judged anew, once.
 */
async function serveCall(
  parts: McpServiceParts,
  open: OpenRequest,
  row: McpMethod,
  span: Span,
): Promise<JsonRpcResponse> {
  const { caller, request } = open;
  let [hasWaited, hasChanged] = [false, false];
  for (;;) {
    const attempted = parts.actions.make(caller, await attemptOf(parts, open, row));
    const result = await runAction<ResponseBody | GatewayError>(
      parts.road,
      attempted,
      (permission, { context }) =>
        parts.metrics.timeDispatch("mcp", dispatch(parts, open, permission, context), context),
      {
        span,
        readDefinition: attempted.tool_definition && (() => publishedDigest(caller, request, attempted)),
        cancel: open.cancellation,
      },
    ).catch((cause: unknown) => {
      if (hasChanged || GatewayError.from(cause).code !== "DEFINITION_CHANGED") throw cause;
      return null;
    });
    if (result === null) {
      hasChanged = true;
      continue;
    }
    span.setAttributes({ passed: result.kind });
    if (result.kind === "answered" || row.routing !== "tool") {
      return { jsonrpc: "2.0", id: request.id, ...replyOf<ResponseBody>(result) };
    }
    const mayWait = !hasWaited && result.kind === "refused" && result.review?.kind === "held";
    const refusal = mayWait ? await parts.hold.waitForApproval(open, result, result.review) : result;
    if (refusal === "approved") {
      hasWaited = true;
      continue;
    }
    return parts.hold.page.ask(open, refusal) ?? refusedToolResult(request.id, caller.era.era, refusal);
  }
}

/** The digest of the called tool's definition, as its upstream publishes it now to this caller. */
async function publishedDigest(
  { group }: Caller,
  { params }: JsonRpcRequest,
  { target }: ActionEnvelope,
): Promise<string | undefined> {
  return (await group.rereadTool(target, params?.name as string))?.digest;
}

async function attemptOf(
  parts: McpServiceParts,
  { caller, request, meta }: OpenRequest,
  row: McpMethod,
): Promise<Attempt> {
  const params = pickParams(row, request.params);
  const { era } = caller.era;
  const mayContinue = era === "modern" || parts.metaPassthrough.length > 0;
  const hasTicket = caller.ticket !== undefined || meta[ticketMetaKey] !== undefined;
  const attempt: Attempt =
    row.routing === "tool"
      ? await findTool(parts, caller, params)
      : {
          tool: request.method,
          target: await ownerOf(caller, row, params),
          capability: row.capability ?? "execute",
          arguments: params,
        };
  return {
    ...attempt,
    continuation: mayContinue ? continuationOf(era, request.params, parts.metaPassthrough) : undefined,
    ticket: hasTicket ? presentTicket(parts.tickets, caller.principal, caller.ticket, meta[ticketMetaKey]) : undefined,
  };
}

async function findTool(parts: McpServiceParts, caller: Caller, params: JsonObject): Promise<Attempt> {
  const name = params.name as string;
  const { tenant } = caller.principal;
  let tool = await caller.group.tool(name);
  if (tool === undefined) throw new GatewayError("TOOL_UNKNOWN", `\`${name.slice(0, 128)}\``);
  let standing = tool.standings.get(tenant);
  if (standing?.generation !== parts.definitions.generation || standing.marks.findings !== undefined) {
    tool = await judgeTool(parts, caller, tool);
    standing = tool.standings.get(tenant);
  }
  const args = (params.arguments as JsonObject | undefined) ?? {};
  if (caller.era.era === "modern") checkParamHeaders(caller.era.paramHeaders, mirroredParams(args, tool.paramHeaders));
  return {
    tool: tool.name,
    target: tool.upstream,
    capability: tool.capability,
    arguments: args,
    definition: { digest: tool.digest, annotations: tool.annotations, ...(standing as Standing).marks },
  };
}

/** Judges the definitions of all tools, and returns the first of this name that is not withheld, else the tool itself. */
async function judgeTool(parts: McpServiceParts, { group, principal }: Caller, tool: ListedTool): Promise<ListedTool> {
  // Lists that were not read yet are not waited for: another upstream that hangs must not delay this call.
  const tools = group.toolClaims;
  await parts.definitions.judge(principal, tools.includes(tool) ? tools : [...tools, tool]);
  const isCallable = ({ exposedName, standings }: ListedTool): boolean =>
    exposedName === tool.exposedName && (standings.get(principal.tenant) as Standing).marks.findings === undefined;
  return tools.find(isCallable) ?? tool;
}

async function ownerOf(caller: Caller, row: McpMethod, params: JsonObject): Promise<string> {
  if (row.routing === "reference") return ownerOfReference(caller, params.ref as JsonObject);
  return row.routing === "prompt" ? ownerOfPrompt(caller, params.name) : ownerOfResource(caller, params.uri);
}

function ownerOfReference(caller: Caller, ref: JsonObject): Promise<string> {
  if (ref.type === "ref/prompt") return ownerOfPrompt(caller, ref.name);
  if (ref.type === "ref/resource") return ownerOfResource(caller, ref.uri);
  throw new GatewayError("INVALID_PARAMS", "expected `ref.type` to be `ref/prompt` or `ref/resource`");
}

async function ownerOfPrompt(caller: Caller, name: unknown): Promise<string> {
  const owner = typeof name === "string" ? await caller.group.promptOwner(name) : undefined;
  if (owner === undefined) throw new GatewayError("PROMPT_UNKNOWN", `\`${String(name).slice(0, 128)}\``);
  return owner;
}

async function ownerOfResource(caller: Caller, uri: unknown): Promise<string> {
  const owner = typeof uri === "string" ? await caller.group.resourceOwner(uri) : undefined;
  if (owner === undefined) {
    throw new GatewayError("RESOURCE_UNKNOWN", undefined, { data: { uri: String(uri).slice(0, 512) } });
  }
  return owner;
}

/** Returns the output of the upstream, or the error that prevented sending: then the outcome is known. */
async function dispatch(
  parts: McpServiceParts,
  open: OpenRequest,
  permission: AuthorizedAction,
  trace: TraceContext | undefined,
): Promise<Answer<ResponseBody | GatewayError>> {
  let connection: UpstreamConnection;
  try {
    connection = await open.caller.group.connection(permission.action.target);
  } catch (cause) {
    return answerOfFault(GatewayError.from(cause));
  }
  const response = await send(parts, open, connection, permission, trace);
  parts.fairShare.mainThread.resume(open.caller.principal);
  const answer = answerOf(response);
  // It may have been parsed in this turn, and takes as long to freeze, and to judge.
  if (isLarge(answer.output)) {
    await parts.fairShare.pause(open.caller.principal);
    deepFreeze(answer.output);
    await parts.fairShare.pause(open.caller.principal);
  }
  return answer;
}

/**
 * Sends an authorized action with its `_meta`, its cancellation and the handlers of what the upstream sends before its
 * response. Resolves with the response after every notification that preceded it was relayed.
 */
async function send(
  parts: McpServiceParts,
  { caller, meta, reply, cancellation }: OpenRequest,
  connection: UpstreamConnection,
  permission: AuthorizedAction,
  trace: TraceContext | undefined,
): Promise<JsonRpcResponse> {
  const { session } = caller;
  const { action } = permission;
  const { target: upstream, untrusted = false } = action;
  if (untrusted) session?.untrusted.add(upstream);
  let lane = session?.lanes.of(upstream);
  const deliver = (note: JsonRpcNotification): void => {
    if (session === null) reply.send(note);
    else session.deliver(note, reply);
  };
  const exchange: Exchange = {
    meta: steeringMeta(meta, trace),
    ...(trace === undefined ? {} : { traceparent: traceparentOf(trace) }),
    pause: () => parts.fairShare.pause(caller.principal),
    signal: cancellation,
    onNotification: (note) => {
      lane ??= new NotificationLane();
      relayNotification(parts, lane, {
        upstream,
        note,
        untrusted,
        action: () => action,
        deliver,
        signal: cancellation,
      });
    },
    onRequest: (question, abort) => relayToClient(parts, caller, { upstream, request: question }, abort, reply),
  };
  try {
    return await connection.request(spendOnRequest(permission, connection.upstream), exchange);
  } finally {
    await lane?.settled;
  }
}

async function discover(parts: McpServiceParts, caller: Caller, request: JsonRpcRequest): Promise<JsonRpcResponse> {
  return { jsonrpc: "2.0", id: request.id, result: discoverResult(parts.identity, await caller.group.servers()) };
}

/** Throws METHOD_UNKNOWN for what no upstream can serve, so that declared capabilities and responses agree. */
async function requireCapability(caller: Caller, row: McpMethod, method: string): Promise<void> {
  const able = mergeCapabilities(await caller.group.servers());
  if (row.needs !== null && !Object.hasOwn(able, row.needs)) throw new GatewayError("METHOD_UNKNOWN", `\`${method}\``);
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
  const request = spendOnRequest(permission, everyUpstream);
  const able = (await caller.group.open()).filter(
    ({ server }) => row.needs === null || row.needs in server.capabilities,
  );
  const replies = await Promise.all(able.map((connection) => connection.request(request)));
  const failed = replies.find((reply) => "error" in reply);
  return failed === undefined ? answerOfResult({}) : answerOf(failed);
}
