import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { GatewayError } from "../action/error.ts";

const maxHeaders = 100;

/** Headers that may come once: with two copies, two readers could see two requests. */
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

/** Paths in their one canonical spelling: no empty or dotted segment, no escape, no fragment, no absolute form. */
const canonicalUrl =
  /^\/(?!\.)(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*)?(?:\?[\x21-\x7e]*)?$/;

/** Refuses, before anything else reads it, a request that two readers could understand differently. Throws a GatewayError. */
export function checkRequest(rule: HostRule, { rawHeaders, headers, url = "" }: IncomingMessage): void {
  checkHeaders(rawHeaders);
  rule.check(headers.host, headers.origin);
  if (!canonicalUrl.test(url) || url.includes("#")) {
    throw new GatewayError("NOT_FOUND", "expected a path in its canonical form");
  }
}

function checkHeaders(raw: readonly string[]): void {
  if (raw.length / 2 > maxHeaders) {
    throw new GatewayError("HEADERS_TOO_LARGE", `expected at most ${maxHeaders} headers, got ${raw.length / 2}`);
  }
  const seen = new Set<string>();
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] as string).toLowerCase();
    if (!singular.has(name)) continue;
    if (seen.has(name)) throw new GatewayError("DUPLICATE_HEADER", `expected one \`${name}\`, got more`);
    seen.add(name);
  }
}

const loopback: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];
const hostShape = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::[0-9]{1,5})?$/i;
const originShape = /^https?:\/\/(\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})(?::[0-9]{1,5})?$/i;

/**
 * The `Host` and `Origin` values that may reach a port, against DNS rebinding and foreign web pages. Empty lists allow
 * the loopback names only.
 */
export class HostRule {
  readonly #hosts: ReadonlySet<string>;
  readonly #origins: ReadonlySet<string>;

  constructor(allowedHosts: readonly string[], allowedOrigins: readonly string[]) {
    this.#hosts = new Set([...loopback, ...allowedHosts.map((host) => host.toLowerCase())]);
    this.#origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  }

  /** Throws HOST_FORBIDDEN or ORIGIN_FORBIDDEN. A request without `Origin` does not come from a web page. */
  check(host: string | undefined, origin: string | undefined): void {
    if (!this.#allowsHost(host?.toLowerCase() ?? "")) {
      throw new GatewayError("HOST_FORBIDDEN", "expected a host listed in `listen.allowed_hosts`");
    }
    if (origin !== undefined && !this.#allowsOrigin(origin.toLowerCase())) {
      throw new GatewayError("ORIGIN_FORBIDDEN", "expected an origin listed in `listen.allowed_origins`");
    }
  }

  /** An entry with a port allows that port only, one without allows every port. */
  #allowsHost(host: string): boolean {
    const name = hostShape.exec(host)?.[1];
    return name !== undefined && (this.#hosts.has(name) || this.#hosts.has(host));
  }

  #allowsOrigin(origin: string): boolean {
    if (this.#origins.has(origin)) return true;
    const name = originShape.exec(origin)?.[1];
    return name !== undefined && loopback.includes(name);
  }
}

/**
 * A header as one text; undefined where it is absent. Copies are joined: `checkRequest` has refused second copies of
 * every header where that would change the meaning.
 */
export function headerText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
