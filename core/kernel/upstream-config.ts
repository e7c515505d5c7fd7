import type { Capability } from "./capability.ts";

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
  /** Globs of tools, and of methods, whose answers taint the session. */
  readonly untrusted: readonly string[];
}

export type UpstreamConfig = (StdioEndpoint | HttpEndpoint) & UpstreamSettings;
export type StdioConfig = StdioEndpoint & UpstreamSettings;
export type HttpConfig = HttpEndpoint & UpstreamSettings;

/** Headers that carry the conversation itself: a configured one would contradict the message, or forge it. */
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

/** Whether a header's value is the protocol's or the HTTP client's to set. */
export function isReservedHeader(name: string): boolean {
  const lower = name.toLowerCase();
  return reservedHeaders.has(lower) || lower.startsWith("mcp-");
}
