import { createHash } from "node:crypto";
import { join } from "node:path";
import { Client } from "undici";
import { Servers } from "../bench/servers.ts";
import { repositoryRoot } from "../check/source-tree.ts";
import { startGateway } from "../support/gateway.ts";
import { InspectedProcess, inspectedEnv } from "./inspected-process.ts";

/** A gateway in a process of its own that an inspector looks into, and a client that calls through it. */
export interface InspectedGateway {
  readonly inspected: InspectedProcess;
  /** Makes one allowed `tools/call` on a connection that is kept, and waits for its whole answer. */
  call(): Promise<void>;
}

const key = "shape-key-not-a-secret";

/**
 * Runs `use` with the gateway of `npm run bench`: the baseline pack, one key, one HTTP upstream, evidence signed and
 * durable. The upstream has its own process and the client is in this one, so the gateway's holds the gateway alone.
 */
export async function withInspectedGateway<Result>(
  use: (gateway: InspectedGateway) => Promise<Result>,
): Promise<Result> {
  const servers = new Servers();
  try {
    const { origin } = await servers.start("../bench/echo-server.js");
    const upstream = `${origin}/mcp`;
    const gateway = await startGateway({ config: configFor(upstream), env: inspectedEnv });
    const client = new Client(gateway.url, { pipelining: 1 });
    try {
      const inspected = await InspectedProcess.connect(gateway.stderr());
      return await use({ inspected, call: () => call(client) }).finally(() => inspected.close());
    } finally {
      await client.close();
      await gateway.stop();
    }
  } finally {
    servers.stop();
  }
}

function configFor(upstream: string): string {
  const hash = createHash("sha256").update(key).digest("hex");
  return `
listen: { gateway_port: 0, admin_port: 0, metrics_port: 0 }
keys: [{ id: shape, tenant: shape, role: operator, key_hash: "sha256:${hash}" }]
upstreams: [{ name: shape, transport: http, url: "${upstream}", capabilities: { lookup: read } }]
policy: { packs: [{ path: ${join(repositoryRoot, "policy-packs/baseline")} }] }
log: { level: warn }
`;
}

async function call(client: Client): Promise<void> {
  const params = { name: "lookup", arguments: { id: "customer-1", fields: ["name", "city"], limit: 10 } };
  const { statusCode, body } = await client.request({
    method: "POST",
    path: "/mcp",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  const text = await body.text();
  if (statusCode !== 200 || text.includes('"isError":true') || text.includes('"error"')) {
    throw new Error(`expected an allowed call, got ${statusCode} ${text}`);
  }
}
