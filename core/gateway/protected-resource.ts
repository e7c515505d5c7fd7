import type { Context } from "koa";
import type { JsonObject } from "../action/json.ts";
import type { OauthConfig } from "../config/gateway-config.ts";
import type { Challenge } from "../http/access.ts";
import type { PortRoutes, RouteHandlers } from "../http/app.ts";

const wellKnown = "/.well-known/oauth-protected-resource";

/** The routes of the gateway port where OAuth is configured. A client derives the path from the URL that it was given. */
export const resourceRoutes = {
  "oauth.resource": { method: "GET", path: wellKnown, access: "public" },
  "oauth.mcp_resource": { method: "GET", path: `${wellKnown}/mcp`, access: "public" },
} as const satisfies PortRoutes;

/** Serves the metadata of the gateway as a protected resource (RFC 9728). */
export function resourceHandlers({ issuer, audience, scopes }: OauthConfig): RouteHandlers<typeof resourceRoutes> {
  const metadata: JsonObject = {
    resource: audience,
    authorization_servers: [issuer],
    bearer_methods_supported: ["header"],
    ...(scopes.length === 0 ? {} : { scopes_supported: scopes }),
    resource_name: "Agent Governance Gateway",
  };
  const serve = (ctx: Context): void => {
    ctx.body = metadata;
  };
  return { "oauth.resource": serve, "oauth.mcp_resource": serve };
}

/**
 * The challenge that sends a client to the metadata (RFC 9728), with the error of RFC 6750 where a key or token was presented.
 * Of the request it contains nothing.
 */
export function oauthChallenge({ audience, scopes }: OauthConfig): Challenge {
  const { origin, pathname } = new URL(audience);
  const metadata = `resource_metadata="${origin}${wellKnown}${pathname === "/" ? "" : pathname}"`;
  const where = scopes.length === 0 ? metadata : `${metadata}, scope="${scopes.join(" ")}"`;
  return ({ code, detail, row }) => {
    if (code === "KEY_MISSING") return `Bearer ${where}`;
    const description = code === "TOKEN_INVALID" && detail !== undefined ? detail : row.text;
    return `Bearer error="invalid_token", error_description="${description}", ${where}`;
  };
}
