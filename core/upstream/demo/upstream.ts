import { fileURLToPath } from "node:url";
import type { UpstreamConfig } from "../../config/gateway-config.ts";

/** The built-in upstream: an MCP server over stdio with notes in memory. Where `env` sets `DEMO_LOG`, it logs each call to that file. */
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
    facts: {},
    trustAnnotations: false,
    definitions: { pin: true, newTools: "pin" },
    untrusted: [],
  };
}
