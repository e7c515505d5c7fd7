import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CreateMessageRequestSchema,
  type CreateMessageResult,
  ElicitRequestSchema,
  type ElicitResult,
  ListRootsRequestSchema,
  type ListRootsResult,
} from "@modelcontextprotocol/sdk/types.js";
import type { JsonObject } from "../../core/action/json.ts";
import type { ClientSide, Endpoint, McpClient, Notification, ToolResult } from "./mcp-client.ts";

/** A client of SDK 1, which speaks the revisions with a handshake. */
export async function connectV1(kind: "v1" | "v1 sse", endpoint: Endpoint, side: ClientSide): Promise<McpClient> {
  const capabilities = {
    ...(side.sampling === undefined ? {} : { sampling: {} }),
    ...(side.elicitation === undefined ? {} : { elicitation: {} }),
    ...(side.page === undefined ? {} : { elicitation: { url: {} } }),
    ...(side.roots === undefined ? {} : { roots: { listChanged: true } }),
  };
  const client = new Client({ name: "v1-test", version: "1.0.0" }, { capabilities });
  answerRequests(client, side);
  const notifications: Notification[] = [];
  client.fallbackNotificationHandler = async (notification) => void notifications.push(notification);
  const transport = transportFor(endpoint);
  // The SDK was not written for `exactOptionalPropertyTypes`.
  await client.connect(transport as Transport);
  return wrap(kind, client, transport, notifications);
}

function transportFor(endpoint: Endpoint): StreamableHTTPClientTransport | SSEClientTransport | StdioClientTransport {
  if ("command" in endpoint) {
    const { command, args, env } = endpoint;
    return new StdioClientTransport({ command, args: [...args], env: { ...env }, stderr: "ignore" });
  }
  const options = { requestInit: { headers: { ...endpoint.headers } } };
  const url = new URL(endpoint.url);
  return endpoint.sse === true ? new SSEClientTransport(url, options) : new StreamableHTTPClientTransport(url, options);
}

function answerRequests(client: Client, { sampling, elicitation, page, roots }: ClientSide): void {
  if (sampling !== undefined) {
    const answer = (params: unknown): CreateMessageResult => sampling(params as JsonObject) as CreateMessageResult;
    client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => answer(params));
  }
  const asked = elicitation ?? page;
  if (asked !== undefined) {
    const answer = async (params: unknown): Promise<ElicitResult> =>
      (await asked(params as JsonObject)) as ElicitResult;
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params));
  }
  if (roots !== undefined) {
    client.setRequestHandler(ListRootsRequestSchema, () => roots() as unknown as ListRootsResult);
  }
}

function wrap(
  kind: "v1" | "v1 sse",
  client: Client,
  transport: ReturnType<typeof transportFor>,
  notifications: Notification[],
): McpClient {
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
      return (await client.callTool(params, undefined, options)) as ToolResult;
    },
    listPrompts: () => client.listPrompts(),
    getPrompt: (name, args) => client.getPrompt({ name, ...(args === undefined ? {} : { arguments: args }) }),
    listResources: () => client.listResources(),
    listResourceTemplates: () => client.listResourceTemplates(),
    readResource: (uri) => client.readResource({ uri }),
    complete: (ref, argument, context) =>
      client.complete({ ref, argument, ...(context === undefined ? {} : { context: { arguments: context } }) }),
    subscribe: async (uri) => void (await client.subscribeResource({ uri })),
    unsubscribe: async (uri) => void (await client.unsubscribeResource({ uri })),
    setLoggingLevel: (level) => client.setLoggingLevel(level),
    rootsChanged: () => client.sendRootsListChanged(),
    end: async () => {
      if (transport instanceof StreamableHTTPClientTransport) await transport.terminateSession();
      await client.close();
    },
    close: () => client.close(),
  };
}
