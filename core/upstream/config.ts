import type { Capability } from "../kernel/capability.ts";
import { GatewayError } from "../kernel/error.ts";

export interface StdioEndpoint {
  readonly transport: "stdio";
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  /** Everything the process gets beside PATH, HOME, LANG and TMPDIR. */
  readonly env: Readonly<Record<string, string>>;
}

export interface HttpEndpoint {
  /** `http`: Streamable HTTP; `sse`: the HTTP+SSE transport of revision 2024-11-05. */
  readonly transport: "http" | "sse";
  readonly url: string;
  /** Sent with every request; secrets are already resolved. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface UpstreamSettings {
  readonly name: string;
  /** Put before each tool name that clients see. */
  readonly toolPrefix: string;
  readonly protocol: "auto" | "legacy" | "modern";
  /** `session`: one connection a client session; `shared`: one for all of them. */
  readonly connection: "session" | "shared";
  /** Silence allowed to one request; each progress notification starts it anew. */
  readonly timeoutMs: number;
  /** The longest one request may take, progress or not. */
  readonly maxTimeoutMs: number;
  /** Connecting and handshake together. */
  readonly startTimeoutMs: number;
  readonly maxConnections: number;
  /** A session's connection without requests is closed after this. */
  readonly idleMs: number;
  /** By tool name, or by glob with `*`. */
  readonly capabilities: Readonly<Record<string, Capability>>;
  readonly trustAnnotations: boolean;
}

export type UpstreamConfig = (StdioEndpoint | HttpEndpoint) & UpstreamSettings;
export type StdioConfig = StdioEndpoint & UpstreamSettings;
export type HttpConfig = HttpEndpoint & UpstreamSettings;

/** Header names that the protocol or the HTTP client sets; a configured one would contradict the message. */
const reservedHeaders: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "last-event-id",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The address of an HTTP upstream. Throws CONFIG_INVALID for another scheme, for credentials in it and for reserved headers. */
export function endpointUrl(config: HttpConfig): URL {
  const url = URL.canParse(config.url) ? new URL(config.url) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new GatewayError("CONFIG_INVALID", `upstream \`${config.name}\`: expected an http or https url`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new GatewayError(
      "CONFIG_INVALID",
      `upstream \`${config.name}\`: expected credentials in a header, not in the url`,
    );
  }
  for (const name of Object.keys(config.headers)) {
    const lower = name.toLowerCase();
    if (reservedHeaders.has(lower) || lower.startsWith("mcp-")) {
      throw new GatewayError(
        "CONFIG_INVALID",
        `upstream \`${config.name}\`: header \`${name}\` belongs to the protocol`,
      );
    }
  }
  return url;
}
