import type { Context } from "koa";
import { GatewayError } from "../action/error.ts";
import type { Principal } from "../action/principal.ts";
import type { PortRoutes, RouteHandlers } from "../http/app.ts";
import type { FairShare } from "../http/fair-share.ts";
import { type Health, healthHandler } from "../http/health.ts";
import type { McpEndpoint } from "./mcp/endpoint.ts";
import type { SseEndpoint } from "./mcp/sse.ts";
import type { ModelEndpoint } from "./model/endpoint.ts";

/** The routes of the gateway port. */
export const gatewayRoutes = {
  "mcp.post": { method: "POST", path: "/mcp", access: "caller" },
  "mcp.stream": { method: "GET", path: "/mcp", access: "caller" },
  "mcp.end": { method: "DELETE", path: "/mcp", access: "caller" },
  "sse.open": { method: "GET", path: "/sse", access: "key" },
  "sse.post": { method: "POST", path: "/mcp/session/:id", access: "key" },
  "model.chat": { method: "POST", path: "/v1/chat/completions", access: "key" },
  "model.messages": { method: "POST", path: "/v1/messages", access: "key" },
  "model.count": { method: "POST", path: "/v1/messages/count_tokens", access: "key" },
  "model.list": { method: "GET", path: "/v1/models", access: "key" },
  // Requests to upgrade are served by `LiveEndpoint`.
  "live.open": { method: "GET", path: "/v1/ws", access: "public" },
  "gateway.health": { method: "GET", path: "/health", access: "public" },
} as const satisfies PortRoutes;

interface GatewayEndpoints {
  readonly endpoint: McpEndpoint;
  readonly sse: SseEndpoint;
  readonly model: ModelEndpoint;
  readonly fairShare: FairShare;
  readonly health: () => Health;
}

type Serve = (ctx: Context, caller: Principal, requestId: string) => Promise<void> | void;

/** The handlers of the port. All but those that end something or are public are served within the caller's share. */
export function gatewayHandlers({
  endpoint,
  sse,
  model,
  fairShare,
  health,
}: GatewayEndpoints): RouteHandlers<typeof gatewayRoutes> {
  const asCall = (serve: Serve): Serve => {
    return (ctx, caller, requestId) => {
      fairShare.admitCall(caller);
      return serve(ctx, caller, requestId);
    };
  };
  // The number of model requests is limited by `usage`.
  const asModelRequest = (serve: Serve): Serve => {
    return (ctx, caller, requestId) => {
      fairShare.admit(caller);
      return serve(ctx, caller, requestId);
    };
  };
  return {
    "mcp.post": asCall(endpoint.post.bind(endpoint)),
    "mcp.stream": asCall(endpoint.stream.bind(endpoint)),
    "mcp.end": endpoint.end.bind(endpoint),
    "sse.open": asCall(sse.open.bind(sse)),
    "sse.post": asCall(sse.post.bind(sse)),
    "model.chat": asModelRequest(model.chat.bind(model)),
    "model.messages": asModelRequest(model.messages.bind(model)),
    "model.count": asCall(model.countTokens.bind(model)),
    "model.list": asCall(model.models.bind(model)),
    "live.open": requireUpgrade,
    "gateway.health": healthHandler(health),
  };
}

/** Refuses a plain request to a path that serves WebSocket only. */
export function requireUpgrade(ctx: Context): never {
  ctx.set({ connection: "upgrade, close", upgrade: "websocket" });
  throw new GatewayError("UPGRADE_REQUIRED", "`/v1/ws` speaks WebSocket");
}
