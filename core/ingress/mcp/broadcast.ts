import { AuthorizedAction } from "../../kernel/authorized-action.ts";
import { everyUpstream } from "../../kernel/envelope.ts";
import type { JsonRpcRequest, JsonRpcResponse } from "../../kernel/json-rpc.ts";
import type { Answer } from "../../pipeline/answer.ts";
import { requestOf } from "../../upstream/dispatch.ts";
import { answerOf, answerOfResult, type ResponseBody } from "./answer.ts";
import type { Caller } from "./caller.ts";
import type { ListParts } from "./list.ts";
import { type McpMethod, pickParams } from "./method.ts";
import { replyOf } from "./refusal.ts";

/** Takes a request to every upstream that can serve it; the first error any of them gives is the answer. */
export async function serveBroadcast(
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
  const reply = replyOf(await parts.road.travel(action, (permission) => sendToAll(permission, caller, row)));
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
