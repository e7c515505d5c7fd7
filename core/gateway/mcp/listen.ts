import { AuthorizedAction } from "../../action/authorized-action.ts";
import type { CancelSignal } from "../../action/cancellation.ts";
import { everyUpstream } from "../../action/envelope.ts";
import { isJsonObject, type Json, type JsonObject } from "../../action/json.ts";
import { type JsonRpcNotification, type JsonRpcResponse, metaKey } from "../../action/json-rpc.ts";
import type { Answer } from "../../road/dispatch.ts";
import { runAction } from "../../road/run.ts";
import type { ServerDescription, UpstreamConnection } from "../../upstream/connection.ts";
import type { UpstreamFleet } from "../../upstream/fleet.ts";
import type { NotificationHandler, UpstreamGroup } from "../../upstream/group.ts";
import { answerOfResult, replyOf } from "./answer.ts";
import type { OpenRequest } from "./caller.ts";
import { mergeCapabilities } from "./handshake.ts";
import type { ListParts } from "./list.ts";
import { type McpMethod, pickParams } from "./method.ts";
import { LaneTable, type RelayParts, relayNotification, unsolicited } from "./notification.ts";

const maxWatchedUris = 1_000;
const acknowledgement = "notifications/subscriptions/acknowledged";

export interface ListenParts extends ListParts, RelayParts {
  readonly fleet: UpstreamFleet;
}

/** The change notifications of a subscription, as far as some upstream can send them. */
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

/** Serves one `subscriptions/listen` stream: an acknowledgement, then notifications until the client disconnects. */
export async function serveListen(parts: ListenParts, open: OpenRequest, row: McpMethod): Promise<JsonRpcResponse> {
  const { caller, request } = open;
  const action = parts.actions.make(caller, {
    tool: request.method,
    target: everyUpstream,
    capability: "read",
    arguments: pickParams(row, request.params),
  });
  const group = parts.fleet.join("modern");
  const result = await runAction(parts.road, action, (permission) => listen(parts, permission, group, open)).finally(
    () => group.close(),
  );
  return { jsonrpc: "2.0", id: request.id, ...replyOf(result) };
}

async function listen(
  parts: ListenParts,
  permission: AuthorizedAction,
  group: UpstreamGroup,
  { caller, request, reply, cancellation: signal }: OpenRequest,
): Promise<Answer<{ readonly result: JsonObject }>> {
  const { arguments: params } = AuthorizedAction.spend(permission);
  const connections = await group.open();
  const filter = supportedFilter((params as JsonObject).notifications as JsonObject, await group.servers());
  const stamped = (note: JsonRpcNotification): void => void reply.send(stamp(note, request.id));
  const lanes = new LaneTable();
  const forward: NotificationHandler = (note, upstream) => {
    if (!accepts(filter, note)) return;
    const sent = unsolicited(parts.actions, () => caller, { upstream, note, mixed: false });
    relayNotification(parts, lanes.of(upstream), { ...sent, deliver: stamped, signal });
  };
  let acknowledge = (): void => undefined;
  const acknowledged = new Promise<void>((resolve) => {
    acknowledge = resolve;
  });
  // What comes before the acknowledgement waits for it: a client may change a resource as soon as it has that.
  for (const { upstream } of connections) lanes.of(upstream).enqueue(0, () => acknowledged);
  group.onNotification(forward);
  await watchResources(group, connections, filter.resourceSubscriptions ?? [], forward, signal);
  stamped({ jsonrpc: "2.0", method: acknowledgement, params: { notifications: { ...filter } } });
  acknowledge();
  if (Object.keys(filter).length > 0) await aborted(signal);
  return answerOfResult({ resultType: "complete", _meta: { [metaKey.subscriptionId]: request.id } });
}

/**
 * Subscribes to updates of resources: at a stateless upstream by a stream of its own, which ends with `signal`; at others
 * by a subscription, which ends with the group. List changes reach every group without one. Resolves once every upstream has
 * answered.
 */
async function watchResources(
  group: UpstreamGroup,
  connections: readonly UpstreamConnection[],
  uris: readonly string[],
  forward: NotificationHandler,
  signal: CancelSignal,
): Promise<void> {
  const owners = await Promise.all(uris.map((uri) => group.resourceOwner(uri)));
  for (const connection of connections) {
    const owned = uris.filter((_, index) => owners[index] === connection.upstream);
    if (owned.length === 0) continue;
    if (connection.server.era === "modern") await watchStream(connection, owned, forward, signal);
    else await Promise.all(owned.map((uri) => connection.request({ method: "resources/subscribe", params: { uri } })));
  }
}

/** Resolves when the upstream has acknowledged the stream, or has ended it: others continue, and the connection reports why. */
function watchStream(
  connection: UpstreamConnection,
  resourceSubscriptions: readonly string[],
  forward: NotificationHandler,
  signal: CancelSignal,
): Promise<void> {
  return new Promise((resolve) => {
    const onNotification = (note: JsonRpcNotification): void => {
      if (note.method === acknowledgement) resolve();
      else forward(note, connection.upstream);
    };
    const params = { notifications: { resourceSubscriptions } };
    connection.request({ method: "subscriptions/listen", params }, { signal, onNotification }).then(
      () => resolve(),
      () => resolve(),
    );
  });
}

function aborted(signal: CancelSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

function supportedFilter(requested: JsonObject, servers: readonly ServerDescription[]): Filter {
  const able = mergeCapabilities(servers);
  const flag = (capability: string, name: string): boolean =>
    isJsonObject(able[capability]) && able[capability][name] === true;
  const uris = readUris(requested.resourceSubscriptions);
  return {
    ...(requested.toolsListChanged === true && flag("tools", "listChanged") ? { toolsListChanged: true } : {}),
    ...(requested.promptsListChanged === true && flag("prompts", "listChanged") ? { promptsListChanged: true } : {}),
    ...(requested.resourcesListChanged === true && flag("resources", "listChanged")
      ? { resourcesListChanged: true }
      : {}),
    ...(uris.length > 0 && flag("resources", "subscribe") ? { resourceSubscriptions: uris } : {}),
  };
}

function readUris(value: Json | undefined): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.filter((uri): uri is string => typeof uri === "string").slice(0, maxWatchedUris);
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
