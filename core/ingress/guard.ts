import type { IncomingMessage } from "node:http";
import type { Middleware } from "koa";
import { GatewayError } from "../kernel/error.ts";
import type { HostRule } from "./host-rule.ts";

const mostHeaders = 100;

/** Headers a second copy of which could make two readers see two requests. */
const singular: ReadonlySet<string> = new Set([
  "anthropic-beta",
  "anthropic-version",
  "authorization",
  "content-encoding",
  "content-length",
  "content-type",
  "host",
  "last-event-id",
  "mcp-method",
  "mcp-name",
  "mcp-protocol-version",
  "mcp-session-id",
  "origin",
  "provider-version",
  "sec-websocket-key",
  "sec-websocket-version",
  "transfer-encoding",
  "x-api-key",
  "x-gateway-session-id",
  "x-gateway-ticket",
  "x-gateway-task",
]);

/** One spelling a path: no empty or dotted segment, no escape, no fragment, no absolute form. */
const canonicalUrl =
  /^\/(?!\.)(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*)?(?:\?[\x21-\x7e]*)?$/;

/** Refuses, before anything else looks at it, a request that two readers could read differently. */
export function guard(rule: HostRule): Middleware {
  return (ctx, next) => {
    checkRequest(rule, ctx.req);
    return next();
  };
}

/** Throws what says why a request may not be looked at. */
export function checkRequest(rule: HostRule, { rawHeaders, headers, url = "" }: IncomingMessage): void {
  checkHeaders(rawHeaders);
  rule.check(headers.host, headers.origin);
  if (!canonicalUrl.test(url) || url.includes("#")) {
    throw new GatewayError("NOT_FOUND", "expected a path in its canonical form");
  }
}

function checkHeaders(raw: readonly string[]): void {
  if (raw.length / 2 > mostHeaders) {
    throw new GatewayError("HEADERS_TOO_LARGE", `expected at most ${mostHeaders} headers, got ${raw.length / 2}`);
  }
  const seen = new Set<string>();
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] as string).toLowerCase();
    if (!singular.has(name)) continue;
    if (seen.has(name)) throw new GatewayError("DUPLICATE_HEADER", `expected one \`${name}\`, got more`);
    seen.add(name);
  }
}
