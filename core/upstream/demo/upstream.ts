import { fileURLToPath } from "node:url";
import type { UpstreamConfig } from "../../config/gateway-config.ts";

/** The built-in upstream: a real MCP server over stdio with notes in memory. With `DEMO_LOG`, it writes a line a call to that file. */
export function demoUpstream(env: Readonly<Record<string, string>> = {}): UpstreamConfig {
  return {
    name: "demo",
    transport: "stdio",
    command: process.execPath,
    args: [fileURLToPath(new URL("./server.js", import.meta.url))],
    env,
    toolPrefix: "",
    protocol: "auto",
    connection: "shared",
    timeoutMs: 10_000,
    maxTimeoutMs: 60_000,
    startTimeoutMs: 15_000,
    maxConnections: 4,
    idleMs: 300_000,
    capabilities: { list_notes: "read", read_note: "read", write_note: "write", delete_note: "delete" },
    trustAnnotations: false,
    untrusted: [],
  };
}
