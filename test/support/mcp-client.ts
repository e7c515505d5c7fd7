import type { JsonObject } from "../../core/action/json.ts";
import { connectV1 } from "./v1-client.ts";
import { connectV2 } from "./v2-client.ts";

/** The official clients that shake hands: SDK 1, the same over HTTP+SSE, SDK 2. */
export const handshakeKinds = ["v1", "v1 sse", "v2 legacy"] as const;
/** All official clients: those, and SDK 2 without a handshake (2026-07-28). */
export const clientKinds = ["v1", "v1 sse", "v2 legacy", "v2 modern"] as const;
export type ClientKind = (typeof clientKinds)[number];

/** Where a client connects: an MCP endpoint over HTTP, or a program whose stdio is one. */
export type Endpoint =
  | { readonly url: string; readonly headers: Readonly<Record<string, string>>; readonly sse?: boolean }
  | { readonly command: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };

/** What the client's user does when a server asks. A member that is missing is a capability not declared. */
export interface ClientSide {
  readonly sampling?: (params: JsonObject) => JsonObject;
  readonly elicitation?: (params: JsonObject) => JsonObject;
  /** Declares that it opens URLs, and is asked to. Not together with `elicitation`. */
  readonly page?: (params: JsonObject) => JsonObject | Promise<JsonObject>;
  readonly roots?: () => JsonObject;
}

export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

export interface CallOptions {
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
  readonly meta?: JsonObject;
}

export interface ToolResult {
  readonly isError?: boolean | undefined;
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: unknown;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

export interface Notification {
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
}

/** What tests ask of a client, whichever SDK it is made with. Results are as the SDK hands them to its user. */
export interface McpClient {
  readonly kind: ClientKind;
  /** Every notification so far that belongs to no call. */
  readonly notifications: readonly Notification[];
  serverCapabilities(): unknown;
  listTools(): Promise<readonly { readonly name: string }[]>;
  callTool(name: string, args?: JsonObject, options?: CallOptions): Promise<ToolResult>;
  listPrompts(): Promise<unknown>;
  getPrompt(name: string, args?: Record<string, string>): Promise<unknown>;
  listResources(): Promise<{ readonly resources: readonly { readonly uri: string }[] }>;
  listResourceTemplates(): Promise<unknown>;
  readResource(uri: string): Promise<unknown>;
  complete(ref: CompletionRef, argument: CompletionArgument, context?: Record<string, string>): Promise<unknown>;
  /** Handshake revisions: `resources/subscribe`; the stateless one: `subscriptions/listen`. */
  subscribe(uri: string): Promise<void>;
  unsubscribe(uri: string): Promise<void>;
  setLoggingLevel(level: "debug" | "info" | "error"): Promise<unknown>;
  rootsChanged(): Promise<void>;
  /** Handshake revisions over HTTP: ends the session with a DELETE. Then closes. */
  end(): Promise<void>;
  close(): Promise<void>;
}

export type CompletionRef =
  | { readonly type: "ref/prompt"; readonly name: string }
  | { readonly type: "ref/resource"; readonly uri: string };

export interface CompletionArgument {
  readonly name: string;
  readonly value: string;
}

/** Connects a client of one of the official SDKs, `v1 sse` to `/sse` of the same port. Rejects as the SDK does. */
export function connectClient(kind: ClientKind, endpoint: Endpoint, side: ClientSide = {}): Promise<McpClient> {
  if (kind === "v2 legacy" || kind === "v2 modern") return connectV2(kind, endpoint, side);
  if (kind === "v1") return connectV1(kind, endpoint, side);
  if ("command" in endpoint) throw new TypeError("connectClient: expected a URL for HTTP+SSE, got a program");
  return connectV1(kind, { ...endpoint, url: new URL("/sse", endpoint.url).href, sse: true }, side);
}

/** The client that asks a server itself, to compare with what `kind` gets through the gateway. */
export function directKind(kind: ClientKind): "v1" | "v2 legacy" {
  return kind === "v1" || kind === "v1 sse" ? "v1" : "v2 legacy";
}

/** Resolves with the first notification, past or to come, that `wanted` says yes to. Rejects after `deadlineMs`. */
export async function awaitNotification(
  client: McpClient,
  wanted: (notification: Notification) => boolean,
  deadlineMs: number = 60_000,
): Promise<Notification> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    const found = client.notifications.find(wanted);
    if (found !== undefined) return found;
    if (performance.now() > end) {
      const got = client.notifications.map(({ method }) => method).join(", ");
      throw new Error(`expected a notification within ${deadlineMs} ms, got only: ${got}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
