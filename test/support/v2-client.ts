import {
  Client,
  type CreateMessageResult,
  type ElicitResult,
  type ListRootsResult,
  type McpSubscription,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { JsonObject } from "../../core/action/json.ts";
import { modernRevision } from "../../core/action/json-rpc.ts";
import type { ClientSide, Endpoint, McpClient, Notification, ToolResult } from "./mcp-client.ts";

/** A client of SDK 2: with a handshake, or pinned to the stateless revision. */
export async function connectV2(
  kind: "v2 legacy" | "v2 modern",
  endpoint: Endpoint,
  side: ClientSide,
): Promise<McpClient> {
  const client = new Client(
    { name: "v2-test", version: "1.0.0" },
    {
      capabilities: {
        ...(side.sampling === undefined ? {} : { sampling: {} }),
        ...(side.elicitation === undefined ? {} : { elicitation: {} }),
        ...(side.page === undefined ? {} : { elicitation: { url: {} } }),
        ...(side.roots === undefined ? {} : { roots: { listChanged: true } }),
      },
      versionNegotiation: { mode: kind === "v2 legacy" ? "legacy" : { pin: modernRevision } },
    },
  );
  answerRequests(client, side);
  const notifications: Notification[] = [];
  client.fallbackNotificationHandler = async (notification) => void notifications.push(notification);
  const transport = transportFor(endpoint);
  await client.connect(transport);
  return wrap(kind, client, transport, notifications);
}

function transportFor(endpoint: Endpoint): StreamableHTTPClientTransport | StdioClientTransport {
  if ("command" in endpoint) {
    const { command, args, env } = endpoint;
    return new StdioClientTransport({ command, args: [...args], env: { ...env }, stderr: "ignore" });
  }
  if (endpoint.sse === true) throw new TypeError("connectV2: expected Streamable HTTP, got the older HTTP+SSE");
  return new StreamableHTTPClientTransport(new URL(endpoint.url), {
    requestInit: { headers: { ...endpoint.headers } },
  });
}

function answerRequests(client: Client, { sampling, elicitation, page, roots }: ClientSide): void {
  if (sampling !== undefined) {
    const answer = (params: unknown): CreateMessageResult => sampling(params as JsonObject) as CreateMessageResult;
    client.setRequestHandler("sampling/createMessage", ({ params }) => answer(params));
  }
  const asked = elicitation ?? page;
  if (asked !== undefined) {
    const answer = async (params: unknown): Promise<ElicitResult> =>
      (await asked(params as JsonObject)) as ElicitResult;
    client.setRequestHandler("elicitation/create", ({ params }) => answer(params));
  }
  if (roots !== undefined) client.setRequestHandler("roots/list", () => roots() as unknown as ListRootsResult);
}

function wrap(
  kind: "v2 legacy" | "v2 modern",
  client: Client,
  transport: ReturnType<typeof transportFor>,
  notifications: Notification[],
): McpClient {
  const subscriptions = new Map<string, McpSubscription>();
  return {
    kind,
    notifications,
    serverCapabilities: () => client.getServerCapabilities(),
    listTools: async () => (await client.listTools()).tools,
    callTool: async (name, args = {}, { onProgress, signal, meta } = {}) => {
      const params = { name, arguments: { ...args }, ...(meta === undefined ? {} : { _meta: { ...meta } }) };
      const options = {
        ...(onProgress === undefined ? {} : { onprogress: onProgress }),
        ...(signal === undefined ? {} : { signal }),
      };
      return (await client.callTool(params, options)) as ToolResult;
    },
    listPrompts: () => client.listPrompts(),
    getPrompt: (name, args) => client.getPrompt({ name, ...(args === undefined ? {} : { arguments: args }) }),
    listResources: () => client.listResources(),
    listResourceTemplates: () => client.listResourceTemplates(),
    readResource: (uri) => client.readResource({ uri }),
    complete: (ref, argument, context) =>
      client.complete({ ref, argument, ...(context === undefined ? {} : { context: { arguments: context } }) }),
    subscribe: async (uri) => {
      if (kind === "v2 modern") subscriptions.set(uri, await client.listen({ resourceSubscriptions: [uri] }));
      else await client.subscribeResource({ uri });
    },
    unsubscribe: async (uri) => {
      if (kind === "v2 modern") await subscriptions.get(uri)?.close();
      else await client.unsubscribeResource({ uri });
    },
    setLoggingLevel: (level) => client.setLoggingLevel(level),
    rootsChanged: () => client.sendRootsListChanged(),
    end: async () => {
      if (transport instanceof StreamableHTTPClientTransport && kind === "v2 legacy")
        await transport.terminateSession();
      await client.close();
    },
    close: () => client.close(),
  };
}
