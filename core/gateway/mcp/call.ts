import type { AuthorizedAction } from "../../action/authorized-action.ts";
import { GatewayError } from "../../action/error.ts";
import type { Json, JsonObject } from "../../action/json.ts";
import type { JsonRpcErrorBody, JsonRpcResponse } from "../../action/json-rpc.ts";
import { inSpan, type Span, type TraceContext, type Tracer } from "../../action/trace.ts";
import type { ActionFactory, Attempt } from "../../road/action-factory.ts";
import type { Answer, DispatchTimer } from "../../road/dispatch.ts";
import { type Road, type RunResult, runAction } from "../../road/run.ts";
import { presentTicket, type TicketReader } from "../../ticket/presented-ticket.ts";
import type { UpstreamConnection } from "../../upstream/connection.ts";
import { mirroredParams } from "../../upstream/mcp-header.ts";
import type { Caller, OpenRequest } from "./caller.ts";
import { checkParamHeaders } from "./era.ts";
import type { Hold } from "./hold.ts";
import { type McpMethod, pickParams } from "./method.ts";
import { refusedToolResult, replyOf } from "./refusal.ts";
import { continuationOf, ticketMeta, traceOf } from "./request-meta.ts";

/** Sends an authorized action to its upstream, with its `_meta`, its cancellation and its notifications. */
type Send = (
  connection: UpstreamConnection,
  permission: AuthorizedAction,
  trace: TraceContext | undefined,
) => Promise<JsonRpcResponse>;

export interface CallParts {
  readonly road: Road;
  readonly actions: ActionFactory;
  readonly hold: Hold;
  readonly tickets: TicketReader;
  /** `_meta` keys beyond the protocol's own that are forwarded; policies see them with the arguments. */
  readonly metaPassthrough: readonly string[];
  readonly metrics: DispatchTimer;
  readonly tracer: Tracer;
}

/** Serves one request by the upstream that owns the named tool, prompt or resource. */
export function serveCall(parts: CallParts, open: OpenRequest, row: McpMethod, send: Send): Promise<JsonRpcResponse> {
  const { caller, request } = open;
  const span = parts.tracer.begin({ protocol: "mcp", method: request.method }, traceOf(caller, request));
  return inSpan(span, async () => {
    const result = await runUntilReviewed(parts, open, row, send, span);
    if (result.kind === "answered" || row.routing !== "tool") {
      return { jsonrpc: "2.0", id: request.id, ...replyOf<ResponseBody>(result) };
    }
    return parts.hold.page.ask(open, result) ?? refusedToolResult(request.id, caller.era.era, result);
  });
}

/**
 * Runs the action. A held tool call waits for its review and, once approved, runs anew from the beginning: nothing known
 * before the wait is reused after it. A call that is held again does not wait again.
 */
async function runUntilReviewed(
  parts: CallParts,
  open: OpenRequest,
  row: McpMethod,
  send: Send,
  span: Span,
): Promise<RunResult<ResponseBody | GatewayError>> {
  const { caller } = open;
  for (let hasWaited = false; ; hasWaited = true) {
    const attempted = parts.actions.make(caller, await attemptOf(parts, open, row));
    const result = await runAction(
      parts.road,
      attempted,
      (permission, { context }) =>
        parts.metrics.timeDispatch("mcp", dispatch(caller, permission, send, context), context),
      span,
    );
    span.setAttributes({ passed: result.kind });
    if (hasWaited || row.routing !== "tool" || result.kind !== "refused" || result.review?.kind !== "held")
      return result;
    const refusal = await parts.hold.waitForApproval(open, result, result.review);
    if (refusal !== "approved") return refusal;
  }
}

async function attemptOf(parts: CallParts, { caller, request }: OpenRequest, row: McpMethod): Promise<Attempt> {
  const params = pickParams(row, request.params);
  const attempt: Attempt =
    row.routing === "tool"
      ? await findTool(caller, params)
      : {
          tool: request.method,
          target: await ownerOf(caller, row, params),
          capability: row.capability ?? "execute",
          arguments: params,
        };
  return {
    ...attempt,
    continuation: continuationOf(caller, request, parts.metaPassthrough),
    ticket: presentTicket(parts.tickets, caller.principal, caller.ticket, ticketMeta(request)),
  };
}

async function findTool(caller: Caller, params: JsonObject): Promise<Attempt> {
  const name = params.name as string;
  const tool = await caller.group.tool(name);
  if (tool === undefined) throw new GatewayError("TOOL_UNKNOWN", `\`${name.slice(0, 128)}\``);
  const args = (params.arguments as JsonObject | undefined) ?? {};
  if (caller.era.era === "modern") checkParamHeaders(caller.era.paramHeaders, mirroredParams(args, tool.paramHeaders));
  return {
    tool: tool.name,
    target: tool.upstream,
    capability: tool.capability,
    arguments: args,
    definition: { digest: tool.digest, annotations: tool.annotations },
  };
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
  caller: Caller,
  permission: AuthorizedAction,
  send: Send,
  trace: TraceContext | undefined,
): Promise<Answer<ResponseBody | GatewayError>> {
  let connection: UpstreamConnection;
  try {
    connection = await caller.group.connection(permission.action.target);
  } catch (cause) {
    return answerOfFault(GatewayError.from(cause));
  }
  return answerOf(await send(connection, permission, trace));
}

/** A response without its id, which belongs to the request. */
export type ResponseBody = { readonly result: JsonObject } | { readonly error: JsonRpcErrorBody };

/** The output of a response. A result with `isError` is an error too. */
export function answerOf(response: JsonRpcResponse): Answer<ResponseBody> {
  if (!("result" in response)) return { status: "error", output: { ...response.error }, makeReply: errorBody };
  const status = response.result.isError === true ? "error" : "success";
  return { status, output: response.result, makeReply: resultBody };
}

/** The output of a result that the gateway makes itself. */
export function answerOfResult(result: JsonObject): Answer<{ readonly result: JsonObject }> {
  return { status: "success", output: result, makeReply: resultBody };
}

/** The output of an error. Where policy redacts its text, the constant part is left. */
export function answerOfFault(fault: GatewayError): Answer<GatewayError> {
  const output = { code: fault.row.jsonRpc, message: fault.publicMessage };
  const makeReply = (judged: Json): GatewayError => (judged === output ? fault : new GatewayError(fault.code));
  return { status: "error", output, makeReply };
}

/** Redaction changes strings only: an output keeps its shape. */
function resultBody(output: Json): { readonly result: JsonObject } {
  return { result: output as JsonObject };
}

function errorBody(output: Json): { readonly error: JsonRpcErrorBody } {
  return { error: output as unknown as JsonRpcErrorBody };
}
