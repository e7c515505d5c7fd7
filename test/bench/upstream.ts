/**
 * What one `tools/call` costs here beyond a plain undici request with the same bodies: CPU of this process for each call,
 * one after the other and 16 at a time, over HTTP to a server in another process. Asserts nothing.
 * Usage: `node dist/test/bench/upstream.js [calls]`.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Pool } from "undici";
import { UpstreamFleet } from "../../core/upstream/fleet.ts";
import { egress } from "../support/egress.ts";
import { awaitReady } from "../support/ready-line.ts";

const calls = Number(process.argv[2] ?? 20_000);
const script = fileURLToPath(new URL("./echo-server.js", import.meta.url));
const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "pipe"], detached: true });
const ready = await awaitReady(child, { ready: true }, 10_000);
const url = new URL(`http://127.0.0.1:${ready.port("port")}/mcp`);

const fleet = new UpstreamFleet({
  egress,
  configs: [
    {
      name: "up",
      transport: "http",
      url: url.href,
      headers: {},
      toolPrefix: "",
      protocol: "legacy",
      connection: "shared",
      timeoutMs: 60_000,
      maxTimeoutMs: 60_000,
      startTimeoutMs: 5_000,
      maxConnections: 64,
      idleMs: 60_000,
      capabilities: {},
      facts: {},
      trustAnnotations: false,
      definitions: { pin: true, newTools: "pin" },
      untrusted: [],
    },
  ],
  replyBounds: { depth: 64, nodes: 100_000, stringLength: 1_000_000, reader: "tolerant" },
  replyBytes: 4_000_000,
  shares: { keySharePercent: 100, tenantSharePercent: 100 },
  clock: Date.now,
  gatewayInfo: { name: "bench", version: "1" },
});
const group = fleet.shared.legacy;
await group.tools();
const params = { name: "lookup", arguments: { id: "4711" } };

async function throughUpstream(): Promise<void> {
  const tool = group.tool("lookup");
  if (tool instanceof Promise || tool === undefined) throw new Error("expected the tool to be known");
  const opened = group.connection(tool.upstream);
  const connection = opened instanceof Promise ? await opened : opened;
  await connection.request({ method: "tools/call", params }, {});
}

const pool = new Pool(url.origin, { bodyTimeout: 0, headersTimeout: 0 });
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };

async function plain(): Promise<void> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const response = await pool.request({ method: "POST", path: url.pathname, headers, body });
  await response.body.json();
}

async function measure(name: string, once: () => Promise<void>, width: number): Promise<void> {
  await Promise.all(Array.from({ length: width }, () => repeat(once, calls / width / 4)));
  const [cpu, start] = [process.cpuUsage(), performance.now()];
  await Promise.all(Array.from({ length: width }, () => repeat(once, calls / width)));
  const [{ user, system }, elapsedMs] = [process.cpuUsage(cpu), performance.now() - start];
  const cpuUs = ((user + system) / calls).toFixed(1).padStart(6);
  const rate = Math.round((calls / elapsedMs) * 1_000);
  process.stdout.write(
    `${name.padEnd(14)} ${String(width).padStart(3)} at a time  ${cpuUs} us CPU a call  ${rate} calls/s\n`,
  );
}

async function repeat(once: () => Promise<void>, count: number): Promise<void> {
  for (let done = 0; done < count; done++) await once();
}

for (let round = 0; round < 2; round++) {
  for (const width of [1, 16]) {
    await measure("plain undici", plain, width);
    await measure("upstream", throughUpstream, width);
  }
}
await fleet.close();
await pool.close();
await ready.stop("SIGTERM", 5_000);
