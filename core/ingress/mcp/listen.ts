import { AuthorizedAction } from "../../kernel/authorized-action.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import type { JsonRpcNotification, JsonRpcRequest, JsonRpcResponse } from "../../kernel/json-rpc.ts";
import { metaKey } from "../../kernel/mcp.ts";
import type { Answer } from "../../pipeline/road.ts";
import type { UpstreamConnection } from "../../upstream/connection.ts";
import { everyUpstream } from "./action-factory.ts";
import type { Caller } from "./caller.ts";
import type { ListParts } from "./list.ts";
import { type McpMethod, pickParams } from "./method.ts";
import { refusedRequest } from "./refusal.ts";
import type { Reply } from "./reply.ts";
import { mergeCapabilities } from "./server-card.ts";

const mostWatchedUris = 1_000;

/** Which change notifications a subscription asks for, and which of them some upstream can give. */
interface Filter {
  readonly toolsListChanged?: true;
  readonly promptsListChanged?: true;
  readonly resourcesListChanged?: true;
  readonly resourceSubscriptions?: readonly string[];
}

const changeOf: Readonly<Record<string, keyof Filter>> = {
  "notifications/tools/list_changed": "toolsListChanged",
  "notifications/prompts/list_changed": "promptsListChanged",
  "notifications/resources/list_changed": "resourcesListChanged",
  "notifications/resources/updated": "resourceSubscriptions",
};

/** Serves one `subscriptions/listen` stream: acknowledged first, then what upstreams say, until the client goes. */
export async function serveListen(
  parts: ListParts,
  caller: Caller,
  row: McpMethod,
  request: JsonRpcRequest,
  reply: Reply,
  signal: AbortSignal,
): Promise<JsonRpcResponse> {
  const action = parts.actions.make(caller, {
    tool: request.method,
    target: everyUpstream,
    capability: "read",
    arguments: pickParams(row, request.params),
  });
  const passage = await parts.road.travel(action, (permission) => listen(permission, caller, request, reply, signal));
  if (passage.kind !== "answered") throw refusedRequest(passage.kind, passage.evaluation);
  return { jsonrpc: "2.0", id: request.id, result: passage.answer.reply };
}

async function listen(
  permission: AuthorizedAction,
  caller: Caller,
  request: JsonRpcRequest,
  reply: Reply,
  signal: AbortSignal,
): Promise<Answer<JsonObject>> {
  const { arguments: params } = AuthorizedAction.spend(permission);
  const connections = await caller.group.open();
  const filter = honoured((params as JsonObject).notifications as JsonObject, connections);
  const stamped = (note: JsonRpcNotification): void => void reply.send(stamp(note, request.id));
  stamped({
    jsonrpc: "2.0",
    method: "notifications/subscriptions/acknowledged",
    params: { notifications: { ...filter } },
  });
  const forward = (note: JsonRpcNotification): void => {
    if (accepts(filter, note)) stamped(note);
  };
  if (Object.keys(filter).length > 0) await watch(caller, connections, filter, forward, signal);
  const result = { resultType: "complete", _meta: { [metaKey.subscriptionId]: request.id } };
  return { status: "success", output: result, reply: result };
}

/** Resolves when `signal` aborts. Stateless upstreams are asked to stream; the others speak on their own connection. */
async function watch(
  caller: Caller,
  connections: readonly UpstreamConnection[],
  filter: Filter,
  forward: (note: JsonRpcNotification) => void,
  signal: AbortSignal,
): Promise<void> {
  const stop = caller.group.onNotification(forward);
  const params = { notifications: { ...filter } } as JsonObject;
  for (const connection of connections) {
    if (connection.server.era !== "modern") continue;
    connection.request({ method: "subscriptions/listen", params }, { signal, onNotification: forward }).catch(() => {
      // The upstream ended its stream: the client keeps the others, and the connection's own fault is reported there.
    });
  }
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  stop();
}

function honoured(asked: JsonObject, connections: readonly UpstreamConnection[]): Filter {
  const able = mergeCapabilities(connections.map(({ server }) => server));
  const flag = (capability: string, name: string): boolean =>
    isJsonObject(able[capability]) && able[capability][name] === true;
  const uris = readUris(asked.resourceSubscriptions);
  return {
    ...(asked.toolsListChanged === true && flag("tools", "listChanged") ? { toolsListChanged: true } : {}),
    ...(asked.promptsListChanged === true && flag("prompts", "listChanged") ? { promptsListChanged: true } : {}),
    ...(asked.resourcesListChanged === true && flag("resources", "listChanged") ? { resourcesListChanged: true } : {}),
    ...(uris.length > 0 && flag("resources", "subscribe") ? { resourceSubscriptions: uris } : {}),
  };
}

function readUris(value: Json | undefined): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.filter((uri): uri is string => typeof uri === "string").slice(0, mostWatchedUris);
}

function accepts(filter: Filter, note: JsonRpcNotification): boolean {
  const change = Object.hasOwn(changeOf, note.method) ? changeOf[note.method] : undefined;
  if (change === undefined) return false;
  const wanted = filter[change];
  return wanted === true || wanted?.includes(String(note.params?.uri)) === true;
}

function stamp(note: JsonRpcNotification, subscription: string | number): JsonRpcNotification {
  const meta = isJsonObject(note.params?._meta) ? note.params._meta : {};
  return { ...note, params: { ...note.params, _meta: { ...meta, [metaKey.subscriptionId]: subscription } } };
}
