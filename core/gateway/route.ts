import type { Context } from "koa";
import { GatewayError } from "../action/error.ts";
import type { PortRoutes, RouteHandlers } from "../http/app.ts";
import { type Health, healthHandler } from "../http/health.ts";
import type { HookEndpoint } from "./hook/endpoint.ts";
import type { McpEndpoint } from "./mcp/endpoint.ts";
import type { SseEndpoint } from "./mcp/sse.ts";
import type { ModelEndpoint } from "./model/endpoint.ts";

/** The routes of the gateway port. Those that end something spend nothing; `usage` limits the number of model requests. */
export const gatewayRoutes = {
  "mcp.post": { method: "POST", path: "/mcp", access: "caller", spends: "call" },
  "mcp.stream": { method: "GET", path: "/mcp", access: "caller", spends: "call" },
  "mcp.end": { method: "DELETE", path: "/mcp", access: "caller" },
  "sse.open": { method: "GET", path: "/sse", access: "key", spends: "call" },
  "sse.post": { method: "POST", path: "/mcp/session/:id", access: "key", spends: "call" },
  "model.chat": { method: "POST", path: "/v1/chat/completions", access: "key", spends: "time" },
  "model.messages": { method: "POST", path: "/v1/messages", access: "key", spends: "time" },
  "model.responses": { method: "POST", path: "/v1/responses", access: "key", spends: "time" },
  "model.count": { method: "POST", path: "/v1/messages/count_tokens", access: "key", spends: "call" },
  "model.embeddings": { method: "POST", path: "/v1/embeddings", access: "key", spends: "time" },
  "model.list": { method: "GET", path: "/v1/models", access: "key", spends: "call" },
  "model.gemini": { method: "POST", path: "/v1beta/models/:model", access: "key", spends: "time" },
  "model.gemini_v1": { method: "POST", path: "/v1/models/:model", access: "key", spends: "time" },
  "model.gemini_list": { method: "GET", path: "/v1beta/models", access: "key", spends: "call" },
  "model.gemini_model": { method: "GET", path: "/v1beta/models/:model", access: "key", spends: "call" },
  "model.get": { method: "GET", path: "/v1/models/:model", access: "key", spends: "call" },
  "action.evaluate": { method: "POST", path: "/v1/actions/evaluate", access: "key", spends: "call" },
  "action.hook": { method: "POST", path: "/v1/hooks/:agent", access: "key", spends: "call" },
  // Requests to upgrade are served by `LiveEndpoint`.
  "live.open": { method: "GET", path: "/v1/ws", access: "public" },
  "gateway.health": { method: "GET", path: "/health", access: "public" },
} as const satisfies PortRoutes;

interface GatewayEndpoints {
  readonly endpoint: McpEndpoint;
  readonly sse: SseEndpoint;
  readonly model: ModelEndpoint;
  readonly hook: HookEndpoint;
  readonly health: () => Health;
}

/** The handlers of the port. */
export function gatewayHandlers({
  endpoint,
  sse,
  model,
  hook,
  health,
}: GatewayEndpoints): RouteHandlers<typeof gatewayRoutes> {
  return {
    "mcp.post": endpoint.post.bind(endpoint),
    "mcp.stream": endpoint.stream.bind(endpoint),
    "mcp.end": endpoint.end.bind(endpoint),
    "sse.open": sse.open.bind(sse),
    "sse.post": sse.post.bind(sse),
    "model.chat": model.chat.bind(model),
    "model.messages": model.messages.bind(model),
    "model.responses": model.responses.bind(model),
    "model.count": model.countTokens.bind(model),
    "model.embeddings": model.embeddings.bind(model),
    "model.list": model.models.bind(model),
    "model.get": model.model.bind(model),
    "model.gemini": model.gemini.bind(model),
    "model.gemini_v1": model.gemini.bind(model),
    "model.gemini_list": model.geminiModels.bind(model),
    "model.gemini_model": model.geminiModel.bind(model),
    "action.evaluate": hook.evaluate.bind(hook),
    "action.hook": hook.hook.bind(hook),
    "live.open": requireUpgrade,
    "gateway.health": healthHandler(health),
  };
}

/** Refuses a plain request to a path that serves WebSocket only. */
export function requireUpgrade(ctx: Context): never {
  ctx.set({ connection: "upgrade, close", upgrade: "websocket" });
  throw new GatewayError("UPGRADE_REQUIRED", "`/v1/ws` speaks WebSocket");
}
